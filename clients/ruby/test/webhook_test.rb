# frozen_string_literal: true

require_relative "helper"

# The vectors that all verifiers agree on.
class WebhookTest < Minitest::Test
  VECTORS = JSON.parse(File.read(File.expand_path("../../conformance/webhook-signatures.json", __dir__))).fetch("vectors")

  def test_vectors
    refute_empty VECTORS
    VECTORS.each do |vector|
      trusted = Postroad::Webhook.verify(vector["body_base64"].unpack1("m0"), vector["header"], vector["secret"],
                                         tolerance: vector["tolerance"], now: vector["now"])
      assert_equal vector["valid"], trusted, vector["name"]
    end
  end

  def test_the_clock_is_now
    header = lambda do |time|
      "t=#{time.to_i},v1=#{OpenSSL::HMAC.hexdigest("SHA256", "whsec_1", "#{time.to_i}.{}")}"
    end
    assert Postroad::Webhook.verify("{}", header.call(Time.now), "whsec_1")
    refute Postroad::Webhook.verify("{}", header.call(Time.now - 3600), "whsec_1")
    assert Postroad::Webhook.verify("{}", header.call(Time.now - 3600), "whsec_1", tolerance: 7200)
  end

  def test_what_is_missing_is_not_trusted
    refute Postroad::Webhook.verify("{}", nil, "whsec_1")
    refute Postroad::Webhook.verify(nil, "t=1,v1=\xff\0", "whsec_1", now: 1)
    refute Postroad::Webhook.verify("{}", "t=1,v1=#{"0" * 64}", nil, now: 1)
  end
end
