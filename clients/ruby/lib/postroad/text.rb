# frozen_string_literal: true

require "json"

module Postroad
  # Text from outside: JSON, and what is made fit for an error message.
  module Text
    LIMIT = 200

    module_function

    # The bytes as UTF-8; what is none becomes U+FFFD.
    def utf8(bytes)
      bytes.dup.force_encoding(Encoding::UTF_8).scrub
    end

    # What the bytes are as JSON; nil when they are none.
    def json(bytes)
      text = bytes.dup.force_encoding(Encoding::UTF_8)
      JSON.parse(text, freeze: true) if text.valid_encoding?
    rescue JSON::ParserError
      nil
    end

    # One line of at most 200 characters.
    def excerpt(text)
      line = utf8(text).gsub(/[[:cntrl:] ]+/, " ").strip
      line.size > LIMIT ? "#{line[0, LIMIT - 1]}…" : line
    end
  end
end
