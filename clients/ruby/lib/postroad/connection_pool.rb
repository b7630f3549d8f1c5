# frozen_string_literal: true

module Postroad
  # Idle connections. A connection belongs to one request at a time, so threads never share one.
  class ConnectionPool
    # More are not kept: they are for a burst of threads, and idle ones cost the server.
    LIMIT = 16

    Idle = Struct.new(:connection, :since)

    def initialize(clock)
      @clock = clock
      @mutex = Mutex.new
      @idle = []
      @process = Process.pid
    end

    # An idle connection that can be used, the last one first; nil when there is none.
    def take
      while (idle = @mutex.synchronize { own.pop })
        return idle.connection if fresh?(idle) && idle.connection.usable?

        idle.connection.close
      end
    end

    # Keeps a connection for the next request.
    def give(connection)
      kept = @mutex.synchronize { own.push(Idle.new(connection, @clock.monotonic)) if own.size < LIMIT }
      connection.close unless kept
    end

    private

    # A process that was forked has copies of its parent's connections. They are forgotten, not closed: with TLS, closing
    # would say goodbye in the parent's name.
    def own
      return @idle if @process == Process.pid

      @process = Process.pid
      @idle = []
    end

    def fresh?(idle)
      @clock.monotonic - idle.since < Connection::IDLE_SECONDS
    end
  end
end
