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

  BOUNCED = '{"id":"evt_1","type":"email.bounced","created_at":"2026-01-31T12:00:03.811Z","new":[],"data":{"email_id":"em_1",' \
            '"recipient_id":"rcp_1","to":"bounce@example.net","from":"bounces@example.com","subject":"Hello","smtp_code":550,' \
            '"smtp_response":"5.1.1 user unknown"}}'

  def signed(body, secret = "whsec_1", time: Time.now.to_i)
    "t=#{time},v1=#{OpenSSL::HMAC.hexdigest("SHA256", secret, "#{time}.#{body}")}"
  end

  def test_an_event
    event = Postroad::Webhook.parse_event(BOUNCED, signed(BOUNCED), "whsec_1")
    assert_equal ["evt_1", "email.bounced", Time.utc(2026, 1, 31, 12, 0, 3.811r)], [event.id, event.type, event.created_at]
    assert_equal ["em_1", "rcp_1", "bounce@example.net", "bounces@example.com", "Hello", 550, "5.1.1 user unknown", false],
                 event.data.to_a
    assert_predicate event, :frozen?
    assert_equal event, Postroad::Webhook.parse_event(BOUNCED, signed(BOUNCED), ["", "whsec_0", "whsec_1"])
  end

  def test_an_event_of_a_new_type
    body = '{"id":"evt_1","type":"email.opened","data":{"test":true}}'
    event = Postroad::Webhook.parse_event(body, signed(body), "whsec_1")
    assert_equal ["email.opened", nil, true, nil], [event.type, event.created_at, event.data.test, event.data.to]
  end

  def test_forged_events
    [[BOUNCED, signed(BOUNCED), "whsec_2"], [BOUNCED, signed(BOUNCED), []], [BOUNCED, signed(BOUNCED), nil], [BOUNCED, nil, "whsec_1"],
     ["#{BOUNCED} ", signed(BOUNCED), "whsec_1"], [BOUNCED, signed(BOUNCED, time: 1), "whsec_1"], ["<html>", "", "whsec_1"]].each do |arguments|
      error = assert_raises(Postroad::SignatureVerificationError) { Postroad::Webhook.parse_event(*arguments) }
      assert_equal ["invalid_signature", nil, false], [error.code, error.status, error.retryable?]
    end
  end

  def test_what_is_signed_and_no_event
    ["<html>", "[]", "{}", '{"id":"evt_1"}', '{"id":7,"type":"x"}', '{"id":"evt_1","type":"x","data":[]}', "{\"id\":\"\xff\"}",
     '{"id":"evt_1","type":"x","data":{"test":"yes"}}', '{"id":"evt_1","type":"x","created_at":"soon"}'].each do |body|
      assert_raises(ArgumentError, body) { Postroad::Webhook.parse_event(body, signed(body), "whsec_1") }
    end
  end
end
