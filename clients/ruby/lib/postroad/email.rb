# frozen_string_literal: true

require "json"

module Postroad
  # An email to send. to, cc, bcc, reply_to and tags take one String or an Array of them, reply_to of up to 10;
  # attachments an Array of Attachment.
  # send_at is a Time or RFC 3339, expires_in a number of seconds, metadata your own data, which is not part of the mail;
  # simulate is for test keys. What is left out is not sent, and the server checks the rest.
  Email = Struct.new(:from, :to, :cc, :bcc, :reply_to, :subject, :text, :html, :template, :variables, :headers, :tags,
                     :attachments, :send_at, :expires_in, :metadata, :simulate, keyword_init: true) do
    def initialize(from:, to:, attachments: nil, **others)
      unless attachments.nil? || (attachments.is_a?(Array) && attachments.all?(Attachment))
        raise ArgumentError, "attachments must be an Array of Postroad::Attachment"
      end

      super
      freeze
    end

    # The members of the request.
    def payload # :nodoc:
      time = send_at.is_a?(Time) ? send_at.iso8601(3) : send_at
      to_h.merge(attachments: attachments&.map(&:payload), send_at: time).compact
    end

    # The body of the request.
    def to_json(*)
      Api.json(payload)
    end
  end
end
