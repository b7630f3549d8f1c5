# frozen_string_literal: true

module Postroad
  # Repeats a request that may succeed later, within bounds of number and time.
  class Retries
    FIRST_PAUSE = 0.5
    LONGEST_PAUSE = 8.0

    def initialize(timeout:, max_retries:, max_elapsed:, clock:)
      @timeout = positive("timeout", timeout)
      @max_elapsed = positive("max_elapsed", max_elapsed)
      unless max_retries.is_a?(Integer) && !max_retries.negative?
        raise ArgumentError, "max_retries must be a whole number, 0 or more"
      end

      @max_retries = max_retries
      @clock = clock
      freeze
    end

    # Yields the number of the attempt, from 1, and the seconds that it has. Gives what the block gives.
    def run
      deadline = @clock.monotonic + @max_elapsed
      attempt = 1
      left = @max_elapsed
      begin
        yield attempt, [@timeout, left].min
      rescue Error => e
        raise unless e.retryable? && attempt <= @max_retries

        pause = pause_after(e, attempt)
        raise if @clock.monotonic + pause >= deadline

        @clock.sleep(pause)
        left = deadline - @clock.monotonic
        raise unless left.positive? # the sleep was longer than asked for

        attempt += 1
        retry
      end
    end

    private

    # What the server asks for, and a random time on top, so that many clients do not come back all at once.
    def pause_after(error, attempt)
      longest = [LONGEST_PAUSE, FIRST_PAUSE * (2**(attempt - 1))].min
      (error.retry_after || 0) + (longest * (0.5 + (@clock.random / 2)))
    end

    def positive(name, value)
      return value if value.is_a?(Numeric) && value.real? && value.finite? && value.positive?

      raise ArgumentError, "#{name} must be a number of seconds above 0"
    end
  end
end
