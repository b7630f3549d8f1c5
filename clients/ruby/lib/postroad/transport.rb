# frozen_string_literal: true

require "net/http"
require "openssl"
require "timeout"
require "uri"

module Postroad
  # One HTTP request and its whole response, over a connection that is kept for the next one.
  class Transport
    # No response of Postroad comes near it.
    BODY_LIMIT = 4 * 1024 * 1024

    Response = Struct.new(:status, :headers, :body) do
      def too_large?
        body.bytesize > BODY_LIMIT
      end
    end

    # No response: the code says why, the message tells people.
    class Failure < StandardError
      attr_reader :code

      def initialize(code, message)
        @code = code
        super(message)
      end
    end

    # The time of an attempt is up. Timeout::Error would not do: it may be the caller's.
    class Expired < StandardError; end

    BROKEN = [SystemCallError, SocketError, IOError, OpenSSL::OpenSSLError, Net::ProtocolError, Net::HTTPBadResponse,
              Net::HTTPHeaderSyntaxError].freeze
    # What Net::HTTP says when something else than a web server listens there. A status line that is cut is broken.
    NO_HTTP = %r{\Awrong status line: "(?!HTTP/)}

    def initialize(base_url, ca_file:, clock:)
      @uri = parse(base_url)
      raise ArgumentError, "ca_file cannot be read: #{ca_file}" if ca_file && !File.readable?(ca_file)

      @ca_file = ca_file
      @pool = ConnectionPool.new(clock)
      freeze
    end

    # The method is a class of Net::HTTP, the path comes after the base URL.
    def call(method, path, headers, body, seconds)
      request = method.new(@uri.path + path, headers)
      request.body = body
      connection = @pool.take || Connection.to(@uri, @ca_file)
      response = within(seconds, connection) { exchange(connection, request) }
      if connection.open? && !response.too_large?
        @pool.give(connection)
        connection = nil
      end
      response
    ensure
      # What did not end well is never used again: something of its response may still come.
      connection&.close
    end

    def base_url
      @uri.to_s
    end

    private

    def parse(base_url)
      uri = URI.parse(base_url)
      problem = if !uri.is_a?(URI::HTTP) || uri.host.to_s.empty? then "must be http or https, with a host"
                elsif uri.userinfo then "must not have a user; give username and password, or a token"
                elsif uri.query || uri.fragment then "must not have a query or a fragment"
                end
      raise ArgumentError, "base_url #{problem}" if problem

      uri.path = uri.path.sub(%r{/+\z}, "")
      uri.freeze
    rescue URI::Error
      # The text is not repeated: there may be a password in it.
      raise ArgumentError, "base_url is not a URL", cause: nil
    end

    # One clock for the whole attempt. Timeout may interrupt at any point; here that does no harm. Nobody else uses
    # the connection, no code of the caller runs inside, and the connection is closed outside of its reach. What is not
    # yet a connection is closed by Net::HTTP, which rescues Expired; without a class Timeout would throw past it.
    def within(seconds, connection)
      Timeout.timeout(seconds, Expired) do
        connection.start unless connection.started?
        yield
      end
    rescue Expired
      raise Failure.new("timed_out", "#{stage(connection)}: it took longer than #{seconds.round(3)} s")
    rescue *BROKEN => e
      code = e.message.match?(NO_HTTP) ? "unexpected_response" : "connection_failed"
      raise Failure.new(code, "#{stage(connection)}: #{reason(e)}")
    end

    def exchange(connection, request)
      whole = nil
      connection.request(request) do |response|
        body = read(response)
        whole = result(response, body)
        return whole if whole.too_large? # leaves Net::HTTP in the middle of the body
        raise EOFError if cut_short?(response, body)
      end
      whole
    end

    # The body, to one piece beyond the limit.
    def read(response)
      body = String.new(encoding: Encoding::BINARY)
      response.read_body do |piece|
        body << piece
        return body if body.bytesize > BODY_LIMIT
      end
      body
    end

    # Net::HTTP takes a body that is shorter than its Content-Length, and a head without an end, for whole. Nothing
    # tells the end of the latter, so a success without a length and a body counts as one.
    def cut_short?(response, body)
      return false if response.chunked? || !response.class.body_permitted?

      body.bytesize < (response.content_length || (response.is_a?(Net::HTTPSuccess) ? 1 : 0))
    end

    def result(response, body)
      Response.new(response.code.to_i, response.each_header.to_h.transform_values { |value| Text.utf8(value) }, body)
    end

    def stage(connection)
      "#{connection.started? ? "no complete response from" : "could not connect to"} #{@uri.host}:#{@uri.port}"
    end

    # The words of the system, without what Ruby and Net::HTTP put around them.
    def reason(error)
      case error
      when SystemCallError then SystemCallError.new(nil, error.errno).message.downcase
      when EOFError then "the connection was closed"
      else Text.excerpt(error.message.sub(/\AFailed to open TCP connection to \S+ \((.*)\)\z/m, '\1'))
      end
    end
  end
end
