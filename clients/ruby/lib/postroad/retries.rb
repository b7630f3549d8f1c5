# frozen_string_literal: true

module Postroad
  # Repeats a request that may succeed later, as long as there is time.
  class Retries
    FIRST_PAUSE = 0.5
    LONGEST_PAUSE = 8.0

    def initialize(timeout:, max_elapsed:, clock:)
      @timeout = Arguments.seconds("timeout", timeout, positive: true)
      @max_elapsed = Arguments.seconds("max_elapsed", max_elapsed)
      @clock = clock
      freeze
    end

    # Yields the number of the attempt, from 1, and the seconds that it has. Gives what the block gives.
    # What is not repeatable is tried again only after a response that says that nothing was done.
    def run(repeatable: true)
      deadline = @clock.monotonic + @max_elapsed
      attempt = 1
      left = @max_elapsed.zero? ? @timeout : @max_elapsed # 0 is one attempt, with all of its time
      begin
        yield attempt, [@timeout, left].min
      rescue Error => e
        pause = pause_after(e, attempt)
        raise unless repeatable || e.status == 429 || e.code == "service_unavailable"
        raise if !e.retryable? || @clock.monotonic + pause >= deadline

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
  end
end
