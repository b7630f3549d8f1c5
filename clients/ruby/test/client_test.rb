# frozen_string_literal: true

require_relative "helper"

# What a client sends, and what it refuses to.
class ClientTest < PostroadTest
  def test_deliver
    scripted = server(ACCEPTED)
    receipt = client(scripted.url).deliver(EMAIL, idempotency_key: "order-1042-receipt")

    assert_equal "em_1", receipt.id
    request = scripted.requests.fetch(0)
    assert_equal ["POST", "/emails"], [request.method, request.path]
    assert_equal "order-1042-receipt", request.headers["idempotency-key"]
    assert_equal "application/json", request.headers["content-type"]
    assert_equal "identity", request.headers["accept-encoding"]
    assert_equal "Bearer #{TOKEN}", request.headers["authorization"]
    assert_equal "postroad-ruby/#{Postroad::VERSION}", request.headers["user-agent"]
    assert_equal EMAIL.to_h.compact, JSON.parse(request.body, symbolize_names: true)
  end

  def test_get
    scripted = server(ScriptedServer.answer(200, { id: "em_1", status: "delivered" }))
    message = client(scripted.url).get("em_1")

    assert_equal "delivered", message.status
    request = scripted.requests.fetch(0)
    assert_equal ["GET", "/emails/em_1"], [request.method, request.path]
    refute_includes request.headers, "idempotency-key"
  end

  def test_a_key_is_made_for_each_send
    scripted = server(ACCEPTED)
    sender = client(scripted.url)
    2.times { sender.deliver(EMAIL) }

    keys = scripted.requests.map { |request| request.headers["idempotency-key"] }
    assert_equal 2, keys.uniq.size
    keys.each { |key| assert_match(/\A\h{8}(-\h{4}){3}-\h{12}\z/, key) }
  end

  def test_a_key_is_kept_across_attempts
    scripted = server(BUSY, BUSY, ACCEPTED)
    client(scripted.url).deliver(EMAIL)

    assert_equal 3, scripted.requests.size
    assert_equal 1, scripted.requests.map { |request| [request.headers["idempotency-key"], request.body] }.uniq.size
  end

  def test_basic
    scripted = server(ACCEPTED)
    client(scripted.url, token: nil, username: "smtp_1", password: "pä:ß" * 20).deliver(EMAIL)

    scheme, value = scripted.requests.fetch(0).headers["authorization"].split(" ", 2)
    assert_equal "Basic", scheme
    assert_equal "smtp_1:#{"pä:ß" * 20}", value.unpack1("m0").force_encoding("UTF-8")
  end

  def test_a_password_of_an_environment_without_a_locale
    scripted = server(ACCEPTED)
    client(scripted.url, token: nil, username: "smtp_ü", password: "pä".dup.force_encoding("US-ASCII")).deliver(EMAIL)
    assert_equal "Basic #{["smtp_ü:pä"].pack("m0")}", scripted.requests.fetch(0).headers["authorization"]
  end

  def test_base_urls
    { "" => "/emails", "/" => "/emails", "/mail" => "/mail/emails", "/mail//" => "/mail/emails" }.each do |path, expected|
      scripted = server(ACCEPTED)
      client(scripted.url + path).deliver(EMAIL)
      assert_equal expected, scripted.requests.fetch(0).path
    end
  end

  def test_ipv6
    scripted = server(ACCEPTED, host: "::1")
    client(scripted.url).deliver(EMAIL)
    assert_equal "[::1]:#{scripted.port}", scripted.requests.fetch(0).headers["host"]
  end

  def test_refused_base_urls
    ["", "mail.example.com", "ftp://mail.example.com", "http://", "http:///mail", "http:mail", "https://a b", "http://h\n",
     "https://ada:secret@mail.example.com", "https://ada:secret @h", "http://h?", "http://h/?a=b", "http://h#top", nil, 7].each do |url|
      error = assert_raises(ArgumentError, url.inspect) { client(url) }
      refute_includes error.full_message, "secret"
    end
  end

  def test_refused_credentials
    [{ token: nil }, { username: "u", password: "p" }, { token: nil, username: "u" }, { token: nil, password: "p" },
     { token: "a\r\nX: y" }, { token: "a\n" }, { token: "a\0" }, { token: "ä" }, { token: 7 },
     { token: nil, username: "a:b", password: "p" }, { token: nil, username: 1, password: 2 }].each do |options|
      assert_raises(ArgumentError, options.inspect) { client("http://127.0.0.1:9", **options) }
    end
  end

  def test_refused_options
    [{ timeout: 0 }, { timeout: nil }, { timeout: -1 }, { timeout: "30" }, { timeout: Float::INFINITY }, { timeout: Float::NAN }, { max_elapsed: -1 },
     { max_elapsed: nil }, { max_elapsed: Float::INFINITY }, { ca_file: "/no/such/file.pem" }].each do |options|
      assert_raises(ArgumentError, options.inspect) { client("http://127.0.0.1:9", **options) }
    end
  end

  def test_refused_calls
    sender = client("http://127.0.0.1:9")
    ["a\r\nX: y", "a\n", "a\0", "ä", 7].each do |key|
      assert_raises(ArgumentError, key.inspect) { sender.deliver(EMAIL, idempotency_key: key) }
    end
    ["", "..", "../v1", "a/b", "a?b", "a%2f", "em_1\n", "em_٣", "\xff", "em_1".encode("UTF-16LE"), nil, 7].each do |id|
      assert_raises(ArgumentError, id.inspect) { sender.get(id) }
      assert_raises(ArgumentError, id.inspect) { sender.wait(id) }
    end
    assert_raises(ArgumentError) { sender.deliver({ from: "hello@example.com" }) }
  end

  def test_several_threads
    scripted = server(ACCEPTED)
    sender = client(scripted.url)
    assert_predicate sender, :frozen?

    ids = Array.new(8) { Thread.new { sender.deliver(EMAIL).id } }.map(&:value)
    assert_equal ["em_1"] * 8, ids
    assert_equal 8, scripted.requests.map { |request| request.headers["idempotency-key"] }.uniq.size
  end

  def test_ten_sends_use_one_connection
    scripted = server(ACCEPTED)
    sender = client(scripted.url)
    10.times { sender.deliver(EMAIL) }
    assert_equal [10, 1], [scripted.requests.size, scripted.connections]
  end

  def test_printing_shows_no_secret
    [client("https://mail.example.com/", token: "hidden"),
     client("https://mail.example.com", token: nil, username: "ada", password: "hidden")].each do |sender|
      assert_equal "#<Postroad::Client https://mail.example.com>", sender.inspect
      refute_includes sender.to_s + sender.pretty_inspect, "hidden"
    end
  end
end
