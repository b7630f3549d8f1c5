# frozen_string_literal: true

# What the tests share: a server that plays a script, and a clock that does not wait.

require "minitest/autorun"
require "json"
require "pp"
require "socket"
require "postroad"

# Answers each request with the next of its steps: a Proc gets the socket, a String is sent as it is, and both end the
# connection; what answer makes is sent, and the connection stays open. The last step is played again for every further
# request.
class ScriptedServer
  Request = Struct.new(:method, :path, :headers, :body)
  # A whole response, after which the connection is kept.
  Whole = Class.new(String)

  attr_reader :requests, :connections

  def self.answer(status, body = "", headers = {})
    body = JSON.generate(body) unless body.is_a?(String)
    fields = { "Content-Length" => body.bytesize }.merge(headers).map { |name, value| "#{name}: #{value}\r\n" }
    Whole.new("HTTP/1.1 #{status} Whatever\r\n#{fields.join}\r\n".b + body.b)
  end

  def initialize(*steps, host: "127.0.0.1")
    @steps = steps
    @requests = []
    @connections = 0
    @host = host
    @mutex = Mutex.new
    @listener = TCPServer.new(host, 0)
    @threads = ThreadGroup.new
    @threads.add(Thread.new { accept })
  end

  def port
    @listener.addr[1]
  end

  def url
    "http://#{@host.include?(":") ? "[#{@host}]" : @host}:#{port}"
  end

  def stop
    @threads.list.each { |thread| thread.kill.join }
    @listener.close
  end

  private

  def accept
    loop do
      socket = @listener.accept
      @connections += 1
      Thread.new { serve(socket) } # of the same group
    end
  end

  def serve(socket)
    while (request = read(socket))
      step = @mutex.synchronize do
        @requests << request
        @steps.size > 1 ? @steps.shift : @steps.first
      end
      step.is_a?(Proc) ? step.call(socket) : socket.write(step)
      break unless step.is_a?(Whole)
    end
  rescue SystemCallError
    nil # the client has gone
  ensure
    socket.close
  end

  def read(socket)
    first = socket.gets
    return if first.nil?

    method, path, = first.split
    headers = {}
    while (line = socket.gets.chomp) != ""
      name, value = line.split(": ", 2)
      headers[name.downcase] = value
    end
    Request.new(method, path, headers, socket.read(headers.fetch("content-length", 0).to_i))
  end
end

# Its time passes only when it is told to, and chance is always the same.
class FakeClock
  attr_reader :pauses, :time, :random

  def initialize(random: 1.0, oversleep: 0)
    @now = 1000.0
    @random = random
    @oversleep = oversleep
    @pauses = []
    @time = Time.utc(2026, 1, 31, 12, 0, 0)
  end

  def monotonic
    @now
  end

  def sleep(seconds)
    @pauses << seconds
    advance(seconds + @oversleep)
  end

  def advance(seconds)
    @now += seconds
  end
end

class PostroadTest < Minitest::Test
  TOKEN = "pr_live_0123456789"
  RECEIPT = { id: "em_1", status: "queued", source: "api", request_id: "req_1" }.freeze
  ACCEPTED = ScriptedServer.answer(202, RECEIPT).freeze
  BUSY = ScriptedServer.answer(503, { error: "try later", code: "service_unavailable", request_id: "req_9" }).freeze
  EMAIL = Postroad::Email.new(from: "hello@example.com", to: "ada@example.net", subject: "Hello", text: "Hi")

  def teardown
    @servers&.each(&:stop)
  end

  # A server that is stopped after the test.
  def server(*steps, **options)
    ScriptedServer.new(*steps, **options).tap { |started| (@servers ||= []) << started }
  end

  def client(url, **options)
    Postroad::Client.new(url, **{ token: TOKEN, clock: FakeClock.new }.merge(options))
  end

  # The error of a single attempt to send to a server that plays this step.
  def failure(step, **options)
    scripted = server(step)
    error_of { client(scripted.url, max_elapsed: 0, **options).deliver(EMAIL) }
  end

  # The Postroad::Error of the block, of whatever kind.
  def error_of
    yield
  rescue Postroad::Error => e
    e
  else
    flunk "there was no error"
  end
end
