# frozen_string_literal: true

module Postroad
  # Checks numbers that the application gives.
  module Arguments
    # The number itself, when it can be a time to wait.
    def self.seconds(name, value, positive: false)
      usable = value.is_a?(Numeric) && value.real? && value.finite? && !value.negative?
      raise ArgumentError, "#{name} must be a number of seconds, 0 or more" unless usable
      raise ArgumentError, "#{name} must be above 0" if positive && value.zero?

      value
    end
  end
end
