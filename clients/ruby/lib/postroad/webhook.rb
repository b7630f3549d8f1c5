# frozen_string_literal: true

require "openssl"

module Postroad
  # Tells webhooks of your Postroad from those of strangers.
  module Webhook
    # Whether the request was signed with the secret, at most tolerance seconds from now. raw_body is the body as it
    # came, before anything has parsed it; header is the value of Service-Signature, or nil. now is for tests.
    def self.verify(raw_body, header, secret, tolerance: 300, now: Time.now)
      sent = { "t" => [], "v1" => [] }
      header.to_s.b.split(",").each do |part|
        name, _, value = part.partition("=")
        sent[name]&.push(value)
      end
      seconds = sent["t"].first
      return false if secret.to_s.empty? || sent["t"].size != 1 || !seconds.match?(/\A[0-9]{1,15}\z/)
      return false if (now.to_i - seconds.to_i).abs > tolerance

      expected = OpenSSL::HMAC.hexdigest("SHA256", secret, "#{seconds}.".b + raw_body.to_s.b)
      given = sent["v1"].grep(/\A[0-9a-f]{64}\z/)
      given.any? { |value| OpenSSL.fixed_length_secure_compare(expected, value) }
    end
  end
end
