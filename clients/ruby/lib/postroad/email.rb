# frozen_string_literal: true

require "json"

module Postroad
  # An email to send. to, cc, bcc and tags take one String or an Array of them; attachments an Array of Attachment.
  # What is left out is not sent, and the server checks the rest.
  Email = Struct.new(:from, :to, :cc, :bcc, :reply_to, :subject, :text, :html, :template, :variables, :headers, :tags,
                     :attachments, keyword_init: true) do
    def initialize(from:, to:, attachments: nil, **others)
      unless attachments.nil? || (attachments.is_a?(Array) && attachments.all?(Attachment))
        raise ArgumentError, "attachments must be an Array of Postroad::Attachment"
      end

      super
      freeze
    end

    # The members of the request.
    def payload # :nodoc:
      to_h.compact.merge({ attachments: attachments&.map(&:payload) }.compact)
    end

    # The body of the request.
    def to_json(*)
      JSON.generate(payload)
    rescue JSON::JSONError, EncodingError => e
      raise ArgumentError, "the email cannot be written as JSON: #{e.message}"
    end
  end
end
