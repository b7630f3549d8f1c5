# frozen_string_literal: true

require "time"

module Postroad
  # Reads the header Retry-After.
  module RetryAfter
    # Seconds to wait from now; nil when the header says nothing of use.
    def self.seconds(header, now)
      return nil if header.nil?
      return header.to_i if header.match?(/\A[0-9]+\z/)

      wait = (Time.httpdate(header) - now).ceil
      wait if wait.positive?
    rescue ArgumentError
      nil
    end
  end
end
