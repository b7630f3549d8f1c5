# frozen_string_literal: true

# What the tests share: a server that plays a script, and a clock that does not wait.

require "minitest/autorun"
require "json"
require "pp"
require "socket"
require "postroad"

# Answers each connection with the next of its steps: a String is sent as it is, a Proc gets the socket. The last step
# is played again for every further connection.
class ScriptedServer
  Request = Struct.new(:method, :path, :headers, :body)

  attr_reader :requests

  def self.answer(status, body = "", headers = {})
    body = JSON.generate(body) unless body.is_a?(String)
    fields = { "Content-Length" => body.bytesize }.merge(headers).map { |name, value| "#{name}: #{value}\r\n" }
    "HTTP/1.1 #{status} Whatever\r\n#{fields.join}\r\n".b + body.b
  end

  def initialize(*steps, host: "127.0.0.1")
    @steps = steps
    @requests = []
    @host = host
    @listener = TCPServer.new(host, 0)
    @thread = Thread.new { loop { serve(@listener.accept) } }
  end

  def port
    @listener.addr[1]
  end

  def url
    "http://#{@host.include?(":") ? "[#{@host}]" : @host}:#{port}"
  end

  def stop
    @thread.kill.join
    @listener.close
  end

  private

  def serve(socket)
    @requests << read(socket)
    step = @steps.size > 1 ? @steps.shift : @steps.first
    step.is_a?(Proc) ? step.call(socket) : socket.write(step)
  rescue SystemCallError
    nil # the client has gone
  ensure
    socket.close
  end

  def read(socket)
    method, path, = socket.gets.split
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

  # The error of a send to a server that plays these steps, with as many attempts as there are steps.
  def failure(*steps, **options)
    scripted = server(*steps)
    assert_raises(Postroad::Error) { client(scripted.url, max_retries: steps.size - 1, **options).deliver(EMAIL) }
  end
end
