# frozen_string_literal: true

require_relative "helper"
require "openssl"
require "tempfile"
require "zlib"

# One attempt: connections that break, stall or never end, and answers in every framing.
class TransportTest < PostroadTest
  def assert_failed(code, error)
    assert_equal code, error.code
    assert_nil error.status
    assert_nil error.request_id
    assert_predicate error, :retryable?
    assert_match(/\A\h{8}-/, error.idempotency_key)
  end

  def test_nobody_listens
    listener = TCPServer.new("127.0.0.1", 0)
    port = listener.addr[1]
    listener.close
    error = error_of { client("http://127.0.0.1:#{port}").deliver(EMAIL) }
    assert_failed "connection_failed", error
    assert_equal "connection_failed: could not connect to 127.0.0.1:#{port}: connection refused (11 attempts)", error.message
    assert_kind_of Errno::ECONNREFUSED, error.cause
  end

  def test_answers_that_are_cut_short
    ["", "HTTP/1.1 2", "HTTP/1.1 202 Accepted\r\n", "HTTP/1.1 202 Accepted\r\nServer: x\r\n", "HTTP/1.1 202 Accepted\r\nServ",
     ACCEPTED[0..-2], "HTTP/1.1 202 Accepted\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n{\"id",
     "HTTP/1.1 202 Accepted\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n{\"id\":\"a\"\r\n1\r\n}\r\n"].each do |bytes|
      assert_failed "connection_failed", failure(bytes)
    end
  end

  def test_an_error_without_a_body
    error = failure("HTTP/1.1 503 Busy\r\nRetry-After: 90\r\n\r\n")
    assert_equal [503, "unexpected_response", 90], [error.status, error.code, error.retry_after]
  end

  def test_what_is_no_http
    error = failure("220 mail.example.com ESMTP\r\n")
    assert_equal ["unexpected_response", nil, false], [error.code, error.status, error.retryable?]
  end

  def test_a_reset
    reset = lambda do |socket|
      socket.write(ACCEPTED[0, 60])
      socket.setsockopt(Socket::SOL_SOCKET, Socket::SO_LINGER, [1, 0].pack("ii"))
    end
    assert_failed "connection_failed", failure(reset)
  end

  def test_servers_that_stall
    hang = ->(socket) { socket.read }
    trickle = ->(start) { ->(socket) { socket.write(start) && loop { socket.write("1") && sleep(0.002) } } }
    [hang, trickle.call("HTTP/1.1 202 Accepted\r\nX-Slow: "), trickle.call("HTTP/1.1 202 Accepted\r\nContent-Length: 999999\r\n\r\n"),
     trickle.call("HTTP/1.1 202 Accepted\r\nTransfer-Encoding: chunked\r\n\r\n0")].each do |step|
      error = failure(step, timeout: 0.05)
      assert_failed "timed_out", error
      assert_match(/\Atimed_out: .* 127.0.0.1:\d+: it took longer than 0.05 s\z/, error.message)
    end
  end

  def test_a_timeout_of_the_caller_is_not_taken_for_ours
    scripted = server(->(socket) { socket.read })
    [nil, Timeout::Error].each do |own|
      assert_raises(Timeout::Error) { Timeout.timeout(0.05, own) { client(scripted.url, timeout: 2, max_elapsed: 0).deliver(EMAIL) } }
    end
  end

  def test_a_handshake_that_stalls_is_hung_up_on
    GC.disable # it would close what was forgotten
    listener = TCPServer.new("127.0.0.1", 0)
    gone = Thread.new { listener.accept.read }
    error = error_of { client("https://127.0.0.1:#{listener.addr[1]}", timeout: 0.05, max_elapsed: 0).deliver(EMAIL) }
    assert_failed "timed_out", error
    assert gone.join(10), "the connection is still open"
  ensure
    GC.enable
    listener.close
  end

  def test_an_exception_of_the_caller_is_not_taken_for_the_reason
    raise "secret"
  rescue RuntimeError
    error = failure("")
    assert_match(/\Aconnection_failed: no complete response from 127.0.0.1:\d+: the connection was closed\z/, error.message)
  end

  def test_a_body_without_end
    endless = ->(head) { ->(socket) { socket.write(head) && loop { socket.write("4000\r\n#{" " * 0x4000}\r\n") } } }
    ["Content-Type: text/plain", "Transfer-Encoding: chunked", "Content-Length: #{10**12}"].each do |field|
      error = failure(endless.call("HTTP/1.1 202 Accepted\r\n#{field}\r\n\r\n"))
      assert_equal [202, "unexpected_response"], [error.status, error.code]
      assert_includes error.message, "larger than 4 MiB"
    end
  end

  def test_framings
    body = JSON.generate(RECEIPT)
    ["HTTP/1.1 202 Accepted\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n#{body[0, 5]}\r\n#{(body.size - 5).to_s(16)};x=y\r\n#{body[5..]}\r\n0\r\nA: b\r\n\r\n",
     "HTTP/1.0 202 Accepted\r\n\r\n#{body}",
     "HTTP/1.1 100 Continue\r\n\r\n#{ACCEPTED}",
     ScriptedServer.answer(202, body + (" " * ((4 << 20) - body.size)))].each do |bytes|
      assert_equal "em_1", client(server(bytes).url).deliver(EMAIL).id
    end
  end

  def test_gzip_that_was_not_asked_for
    error = failure(ScriptedServer.answer(202, Zlib.gzip(JSON.generate(RECEIPT)), "Content-Encoding" => "gzip"))
    assert_equal "unexpected_response", error.code
    assert_predicate error.message, :valid_encoding?
  end

  def test_a_connection_that_the_server_has_closed_is_not_used
    { "closed in silence" => String.new(ACCEPTED),
      "announced" => ScriptedServer.answer(202, RECEIPT, "Connection" => "close"),
      "HTTP/1.0" => "HTTP/1.0 202 Accepted\r\n\r\n#{JSON.generate(RECEIPT)}",
      "a late word" => "#{ACCEPTED}HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n" }.each do |name, step|
      scripted = server(step)
      sender = client(scripted.url, max_elapsed: 0) # an attempt that failed would show
      sender.deliver(EMAIL)
      sleep 0.05 # until the end of the connection is here
      assert_equal "em_1", sender.deliver(EMAIL).id, name
      assert_equal [2, 2], [scripted.requests.size, scripted.connections], name
    end
  end

  def test_a_connection_that_breaks_during_a_request_is_repeated_with_the_same_key
    scripted = server(ACCEPTED, :close.to_proc, ACCEPTED)
    sender = client(scripted.url)
    2.times { sender.deliver(EMAIL) }
    assert_equal 2, scripted.connections
    assert_equal(2, scripted.requests.map { |request| request.headers["idempotency-key"] }.uniq.size)
    assert_equal scripted.requests[1].headers, scripted.requests[2].headers
  end

  def test_a_connection_in_the_middle_of_a_response_is_not_used_again
    large = ScriptedServer.answer(202, " " * (5 << 20))
    slow = ->(socket) { socket.write(ACCEPTED[0..-2]) && sleep(0.3) && socket.write(ACCEPTED[-1]) }
    scripted = server(large, slow, ScriptedServer.answer(202, { id: "em_2" }))
    sender = client(scripted.url, timeout: 0.1, max_elapsed: 0)
    assert_equal "unexpected_response", error_of { sender.deliver(EMAIL) }.code
    assert_equal "timed_out", error_of { sender.deliver(EMAIL) }.code
    assert_equal "em_2", sender.deliver(EMAIL).id
    assert_equal 3, scripted.connections
  end

  def test_an_idle_connection_is_given_up_after_30_seconds
    clock = FakeClock.new
    scripted = server(ACCEPTED)
    sender = client(scripted.url, clock: clock)
    [29, 30, 0].each do |seconds|
      sender.deliver(EMAIL)
      clock.advance(seconds)
    end
    assert_equal [3, 2], [scripted.requests.size, scripted.connections]
  end

  def test_a_forked_process_has_connections_of_its_own
    scripted = server(ACCEPTED)
    sender = client(scripted.url)
    sender.deliver(EMAIL)
    child = fork { exit!(sender.deliver(EMAIL).id == "em_1") }
    assert_predicate Process.wait2(child).last, :success?
    sender.deliver(EMAIL)
    assert_equal [3, 2], [scripted.requests.size, scripted.connections]
  end

  def test_at_most_16_connections_are_kept
    scripted = server(->(socket) { sleep(0.2) && socket.write(ACCEPTED) && socket.read })
    sender = client(scripted.url)
    Array.new(20) { Thread.new { sender.deliver(EMAIL) } }.each(&:join)
    idle = sender.instance_variable_get(:@transport).instance_variable_get(:@pool).instance_variable_get(:@idle)
    assert_equal 16, idle.size
  end

  def test_the_proxy_of_the_environment_is_not_asked
    before = ENV.to_h.slice("http_proxy", "no_proxy")
    ENV.update("http_proxy" => "http://127.0.0.1:9", "no_proxy" => nil)
    assert_equal "em_1", client(server(ACCEPTED).url).deliver(EMAIL).id
  ensure
    ENV.update({ "http_proxy" => nil, "no_proxy" => nil }.merge(before))
  end

  def test_tls_is_verified
    key = OpenSSL::PKey::EC.generate("prime256v1")
    certificate = self_signed(key)
    context = OpenSSL::SSL::SSLContext.new.tap { |each| each.add_certificate(certificate, key) }
    serve = lambda do |socket|
      tls = OpenSSL::SSL::SSLSocket.new(socket, context).accept
      tls.readpartial(4096)
      tls.write(ACCEPTED)
      tls.close
    rescue OpenSSL::SSL::SSLError, IOError
      nil
    end
    listener = TCPServer.new("127.0.0.1", 0)
    thread = Thread.new { loop { serve.call(listener.accept) } }
    url = "https://127.0.0.1:#{listener.addr[1]}"

    error = error_of { client(url, max_elapsed: 0).deliver(EMAIL) }
    assert_failed "connection_failed", error
    assert_match(/could not connect to .*certificate verify failed/, error.message)
    Tempfile.create("ca") do |file|
      file.write(certificate.to_pem)
      file.close
      assert_equal "em_1", client(url, ca_file: file.path).deliver(EMAIL).id
      wrong_name = url.sub("127.0.0.1", "localhost")
      assert_equal "connection_failed", error_of { client(wrong_name, ca_file: file.path).deliver(EMAIL) }.code
    end
  ensure
    thread&.kill&.join
    listener&.close
  end

  def self_signed(key)
    certificate = OpenSSL::X509::Certificate.new
    certificate.version = 2
    certificate.serial = 1
    certificate.subject = certificate.issuer = OpenSSL::X509::Name.parse("/CN=test")
    certificate.public_key = key
    certificate.not_before = Time.now - 60
    certificate.not_after = Time.now + 3600
    extensions = OpenSSL::X509::ExtensionFactory.new(certificate, certificate)
    certificate.add_extension(extensions.create_extension("subjectAltName", "IP:127.0.0.1"))
    certificate.add_extension(extensions.create_extension("basicConstraints", "CA:TRUE", true))
    certificate.sign(key, "SHA256")
  end
end
