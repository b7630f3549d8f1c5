# frozen_string_literal: true

require_relative "helper"

# Waiting for a final status, on a clock that moves only when the client sleeps.
class WaitTest < PostroadTest
  def message(*statuses)
    ScriptedServer.answer(200, { id: "em_1", status: "partial", recipients: statuses.map { |status| { status: status } } })
  end

  def test_it_reads_until_every_recipient_is_final
    clock = FakeClock.new
    scripted = server(*[message("delivered", "deferred")] * 8, message("delivered", "bounced"))
    assert_equal "bounced", client(scripted.url, clock: clock).wait("em_1").recipients.last.status
    assert_equal 9, scripted.requests.size
    assert_equal [1.0, 1.5, 2.25, 3.375, 5.0625, 7.59375, 10.0, 10.0], clock.pauses
  end

  def test_it_ends_with_the_time_and_the_last_message
    { 0 => [], 0.5 => [0.5], 3.5 => [1.0, 1.5, 1.0] }.each do |timeout, pauses|
      clock = FakeClock.new
      scripted = server(message("queued"))
      error = assert_raises(Postroad::TimedOutError) { client(scripted.url, clock: clock).wait("em_1", timeout: timeout) }
      assert_equal ["timed_out", nil, nil, true], [error.code, error.status, error.idempotency_key, error.retryable?]
      assert_equal "timed_out: em_1 is not final after #{timeout} s", error.message
      assert_equal "queued", error.last_message.recipients.first.status
      assert_equal pauses, clock.pauses
      assert_equal pauses.size + 1, scripted.requests.size
    end
  end

  def test_it_gives_the_error_of_get
    scripted = server(ScriptedServer.answer(404, { code: "not_found" }))
    assert_raises(Postroad::NotFoundError) { client(scripted.url).wait("em_1") }
    [-1, nil, "1", Float::INFINITY].each do |timeout|
      assert_raises(ArgumentError, timeout.inspect) { client(scripted.url).wait("em_1", timeout: timeout) }
    end
    assert_equal 1, scripted.requests.size
  end

  def test_what_is_final
    { ["delivered"] => true, %w[bounced failed delivered] => true, [] => false, %w[delivered snoozed] => false,
      [nil] => false }.each do |statuses, final|
      assert_equal final, client(server(message(*statuses)).url).get("em_1").final?, statuses.inspect
    end
  end
end
