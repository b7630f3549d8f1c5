# frozen_string_literal: true

require "openssl"

module Postroad
  # Tells webhooks of your Postroad from those of strangers, and reads them.
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

    # The Event of a request that verify trusts. secret may be an Array, of which one has to match. Raises a
    # SignatureVerificationError for a request that is not to be trusted, and an ArgumentError for one that was signed
    # but is no event.
    def self.parse_event(raw_body, header, secret, tolerance: 300, now: Time.now)
      unless Array(secret).any? { |each| verify(raw_body, header, each, tolerance: tolerance, now: now) }
        raise Error.of("the webhook was not signed with this secret, or not recently", code: "invalid_signature")
      end

      begin
        Event.read(Members.new(Text.json(raw_body.to_s)))
      rescue Members::WrongType => e
        raise ArgumentError, "the body is signed, but is not an event: #{e.message}"
      end
    end
  end
end
