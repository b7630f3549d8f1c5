# frozen_string_literal: true

require_relative "helper"

# What is made of answers: values and errors.
class AnswerTest < PostroadTest
  def read_receipt(members)
    client(server(ScriptedServer.answer(202, members)).url).deliver(EMAIL)
  end

  def read_message(members)
    client(server(ScriptedServer.answer(200, members)).url).get("em_1")
  end

  def test_a_whole_receipt
    members = { id: "em_1", status: "queued", source: "api", request_id: "req_1", from: "hello@example.com",
                to: ["ada@example.net"], cc: [], bcc: ["b@example.net"], reply_to: "help@example.com", subject: "Grüße",
                billing_status: "reserved", recipient_count: 2, credits_reserved: 2, headers: { "X-Order" => "1042" },
                tags: ["receipt"], attachments: [{ filename: "a.txt", content_type: "text/plain", size: 3, content_id: nil }],
                send_at: nil, expires_at: nil, metadata: { "order" => "1042" } }
    read = read_receipt(members)
    assert_equal members.merge(attachments: [Postroad::AttachmentInfo.new(**members[:attachments][0])]), read.to_h
    assert [read, read.to, read.headers, read.attachments, read.attachments[0], read.subject].all?(&:frozen?)
  end

  def test_a_whole_message
    read = read_message(id: "em_1", status: "partial", created_at: "2026-01-31T12:00:00.250Z", send_at: "2026-01-31T12:00:00Z",
                   recipients: [{ id: "rcp_1", email: "ada@example.net", status: "bounced", attempt_count: 1, last_smtp_code: 550,
                                  last_smtp_response: "no such user", delivered_at: nil, bounced_at: "2026-01-31T13:00:01+01:00" }])
    assert_equal Time.utc(2026, 1, 31, 12, 0, 0.25r), read.created_at
    assert_equal Time.utc(2026, 1, 31, 12), read.send_at
    recipient = read.recipients.fetch(0)
    assert_equal [550, "no such user", nil], [recipient.last_smtp_code, recipient.last_smtp_response, recipient.delivered_at]
    assert_equal Time.utc(2026, 1, 31, 12, 0, 1), recipient.bounced_at
  end

  def test_replies_that_go_to_several_addresses
    assert_equal ["a@example.com", "b@example.com"], read_receipt(id: "em_1", reply_to: ["a@example.com", "b@example.com"]).reply_to
    assert_equal "a@example.com", read_receipt(id: "em_1", reply_to: "a@example.com").reply_to
  end

  def test_unknown_members_and_missing_ones
    read = read_receipt(id: "em_1", status: "dreaming", mood: { deep: [1] })
    assert_equal ["dreaming", nil, [], {}, []], [read.status, read.from, read.to, read.headers, read.attachments]
    read = read_message(id: "em_1", status: "queued", recipients: [{}], created_at: nil)
    assert_equal [nil, nil, nil], [read.created_at, read.recipients[0].email, read.recipients[0].bounced_at]
  end

  def test_answers_that_are_no_receipt
    [{}, [], "", "{", "null", "\xff", { id: "" }, { id: 7 }, { id: nil }, { id: "a", to: "b" }, { id: "a", to: [1] }, { id: "a", reply_to: [1] }, { id: "a", headers: [] },
     { id: "a", headers: { a: 1 } }, { id: "a", recipient_count: "2" }, { id: "a", recipient_count: 1.0 }, { id: "a", attachments: [1] },
     "<p>Welcome to this hotel</p>", "[" * 10_000].each do |body|
      error = assert_raises(Postroad::Error, body.inspect) { read_receipt(body) }
      assert_equal [202, "unexpected_response", false], [error.status, error.code, error.retryable?]
      assert_match(/\A202 unexpected_response: the response is not a receipt: it/, error.message)
      assert_operator error.full_message.size, :<, 5000
    end
  end

  def test_answers_that_are_no_message
    [{ id: "a" }, { status: "queued" }, { id: "a", status: "queued", created_at: "yesterday" }, { id: "a", status: "queued", created_at: 1 },
     { id: "a", status: "queued", recipients: {} }].each do |body|
      assert_equal "unexpected_response", assert_raises(Postroad::Error, body.inspect) { read_message(body) }.code
    end
    assert_equal 204, error_of { client(server("HTTP/1.1 204 No Content\r\n\r\n").url).get("em_1") }.status
  end

  def test_an_error_object
    error = failure(ScriptedServer.answer(402, { error: "the account has 3 credits and the message has 5 recipients",
                                                 code: "insufficient_credits", request_id: "req_1" }, "X-Request-ID" => "req_2"))
    assert_equal "402 insufficient_credits: the account has 3 credits and the message has 5 recipients (req_1)", error.message
    assert_equal [402, "insufficient_credits", "req_1", nil], [error.status, error.code, error.request_id, error.retry_after]
    assert_equal [true, false, false], [error.insufficient_credits?, error.idempotency_conflict?, error.retryable?]
    refute_includes error.full_message, TOKEN
  end

  def test_an_error_object_with_the_least
    assert_equal "400 odd: the server gives no reason", failure(ScriptedServer.answer(400, { error: ["no"], code: "odd", request_id: 7 })).message
  end

  def test_the_last_of_several_errors
    slow = ScriptedServer.answer(429, { error: "slow", code: "rate_limited" }, "Retry-After" => "7", "X-Request-ID" => "req_2")
    error = error_of { client(server(BUSY, slow).url, max_elapsed: 5).deliver(EMAIL) }
    assert_equal "429 rate_limited: slow (req_2, 2 attempts)", error.message
    assert_equal ["req_2", 7, true], [error.request_id, error.retry_after, error.retryable?]
  end

  def test_pages_that_are_no_error_object
    { "<html>\n<h1>Bad</h1>\e[31m" => "<html> <h1>Bad</h1> [31m", "x" * 5000 => "#{"x" * 199}…", '{"code":7}' => '{"code":7}',
      "gr\xFC\xDFe" => "gr\u{fffd}\u{fffd}e", '["not_found"]' => '["not_found"]' }.each do |page, quoted|
      error = failure(ScriptedServer.answer(502, page, "X-Request-ID" => "req_pröxy"))
      assert_equal "502 unexpected_response: the response is not one of Postroad: #{quoted} (req_pröxy)", error.message
      assert_predicate error, :retryable?
    end
    assert_match(/it is empty\z/, failure(ScriptedServer.answer(500)).message)
    assert_predicate failure(ScriptedServer.answer(503, "<html>")), :retryable?
  end

  def test_redirects_are_not_followed
    elsewhere = server(ACCEPTED)
    [301, 302, 303, 307, 308].each do |status|
      error = failure(ScriptedServer.answer(status, "", "Location" => "#{elsewhere.url}/#{"x" * 300}"))
      assert_match(/\A#{status} unexpected_response: the server redirects to #{elsewhere.url}.{100,190}…; redirects are not followed\z/, error.message)
    end
    assert_empty elsewhere.requests
    assert_includes failure("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n").message, "redirects to nowhere"
  end
end
