# frozen_string_literal: true

require "io/wait"
require "net/http"

module Postroad
  # A connection to the service that can be used for several requests, one after the other.
  class Connection < Net::HTTP
    # As long as a usual server keeps an idle connection; Net::HTTP would give it up after 2 seconds.
    IDLE_SECONDS = 30

    def self.to(uri, ca_file)
      http = new(uri.hostname, uri.port, nil) # nil: no proxy from the environment
      http.use_ssl = uri.is_a?(URI::HTTPS)
      http.ca_file = ca_file
      http.max_retries = 0 # it would repeat a GET by itself
      http.keep_alive_timeout = IDLE_SECONDS
      http.open_timeout = http.read_timeout = http.write_timeout = nil # these begin anew with each byte; see Transport
      http
    end

    # Whether the last response has left it open.
    def open?
      started? && !@socket.closed?
    end

    # Whether a request may go over it. An idle connection has nothing to read: what can be read is its end, or something
    # that is not the response to the next request.
    def usable?
      open? && !@socket.io.to_io.wait_readable(0)
    rescue IOError, SystemCallError
      false
    end

    def close
      finish if started?
    rescue IOError, SystemCallError, OpenSSL::SSL::SSLError
      nil # it is closed all the same
    end
  end
end
