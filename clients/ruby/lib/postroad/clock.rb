# frozen_string_literal: true

module Postroad
  # Time, sleep and chance, in one place so that tests can put another in its stead.
  module Clock
    module_function

    # Seconds that never jump, for deadlines.
    def monotonic
      Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end

    # The time of day, for dates that a server names.
    def time
      Time.now
    end

    def sleep(seconds)
      Kernel.sleep(seconds)
    end

    # A number from 0.0 to 1.0.
    def random
      Kernel.rand
    end
  end
end
