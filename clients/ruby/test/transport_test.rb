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
    error = assert_raises(Postroad::Error) { client("http://127.0.0.1:#{port}").deliver(EMAIL) }
    assert_failed "connection_failed", error
    assert_equal "connection_failed: could not connect to 127.0.0.1:#{port}: connection refused (5 attempts)", error.message
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
      assert_raises(Timeout::Error) { Timeout.timeout(0.05, own) { client(scripted.url, timeout: 2, max_retries: 0).deliver(EMAIL) } }
    end
  end

  def test_a_handshake_that_stalls_is_hung_up_on
    GC.disable # it would close what was forgotten
    listener = TCPServer.new("127.0.0.1", 0)
    gone = Thread.new { listener.accept.read }
    error = assert_raises(Postroad::Error) { client("https://127.0.0.1:#{listener.addr[1]}", timeout: 0.05, max_retries: 0).deliver(EMAIL) }
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
    assert_match(/\Aconnection_failed: no complete answer from 127.0.0.1:\d+: the connection was closed\z/, error.message)
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

    error = assert_raises(Postroad::Error) { client(url, max_retries: 0).deliver(EMAIL) }
    assert_failed "connection_failed", error
    assert_match(/could not connect to .*certificate verify failed/, error.message)
    Tempfile.create("ca") do |file|
      file.write(certificate.to_pem)
      file.close
      assert_equal "em_1", client(url, ca_file: file.path).deliver(EMAIL).id
      wrong_name = url.sub("127.0.0.1", "localhost")
      assert_equal "connection_failed", assert_raises(Postroad::Error) { client(wrong_name, ca_file: file.path).deliver(EMAIL) }.code
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
