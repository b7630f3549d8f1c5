# frozen_string_literal: true

require_relative "helper"

# When a request is repeated, and how long the client waits.
class RetriesTest < PostroadTest
  Retries = Postroad.const_get(:Retries)
  RetryAfter = Postroad.const_get(:RetryAfter)

  # Runs a request that always fails, and gives the clock and the seconds of each attempt.
  def run_in_vain(code: "connection_failed", retry_after: nil, clock: FakeClock.new, took: 0, **options)
    seconds = []
    retries = Retries.new(**{ timeout: 30, max_elapsed: 60, clock: clock }.merge(options))
    error = error_of do
      retries.run do |attempt, left|
        seconds << left
        clock.advance(took)
        raise Postroad::Error.of("no", code: code, retry_after: retry_after, attempts: attempt)
      end
    end
    [clock, seconds, error]
  end

  def test_pauses_double_up_to_8_seconds
    clock, = run_in_vain(max_elapsed: 24, clock: FakeClock.new(random: 1.0))
    assert_equal [0.5, 1.0, 2.0, 4.0, 8.0, 8.0], clock.pauses
    clock, = run_in_vain(max_elapsed: 12, clock: FakeClock.new(random: 0.0))
    assert_equal [0.25, 0.5, 1.0, 2.0, 4.0, 4.0], clock.pauses
  end

  def test_retry_after_comes_on_top
    clock, = run_in_vain(retry_after: 3, max_elapsed: 10)
    assert_equal [3.5, 4.0], clock.pauses
  end

  def test_number_of_attempts
    _, seconds, error = run_in_vain
    assert_equal 11, seconds.size
    assert_includes error.message, "(11 attempts)"
    assert_equal 1, run_in_vain(code: "invalid_request")[1].size
  end

  def test_no_time_is_one_attempt
    clock, seconds, = run_in_vain(max_elapsed: 0)
    assert_equal [[], [30]], [clock.pauses, seconds]
  end

  def test_a_wait_beyond_max_elapsed_is_not_begun
    [60, 86_400, 10**30].each do |wait|
      clock, seconds, error = run_in_vain(retry_after: wait)
      assert_empty clock.pauses
      assert_equal 1, seconds.size
      assert_equal wait, error.retry_after
    end
  end

  def test_an_attempt_gets_what_is_left
    _, seconds, = run_in_vain(took: 25)
    assert_equal [30, 30, 8.5], seconds
  end

  def test_a_sleep_that_is_too_long_ends_it
    clock, seconds, = run_in_vain(clock: FakeClock.new(oversleep: 100))
    assert_equal 1, clock.pauses.size
    assert_equal 1, seconds.size
  end

  def test_what_is_repeated
    retried = [[408, nil], [429, "rate_limited"], [500, "internal_error"], [500, nil], [502, nil], [503, "temporary_failure"],
               [504, nil], [409, "idempotency_in_progress"]]
    final = [[400, "invalid_request"], [402, "insufficient_credits"], [404, nil], [409, "idempotency_conflict"],
             [501, "internal_error"], [505, nil], [200, nil]]
    (retried + final).each do |status, code|
      scripted = server(ScriptedServer.answer(status, code ? { error: "no", code: code } : "<html>"), ACCEPTED)
      begin
        client(scripted.url).deliver(EMAIL)
      rescue Postroad::Error => e
        refute_predicate e, :retryable?
      end
      assert_equal retried.include?([status, code]) ? 2 : 1, scripted.requests.size, "#{status} #{code}"
    end
  end

  def test_get_is_repeated_too
    clock = FakeClock.new
    scripted = server(:close.to_proc, BUSY, ScriptedServer.answer(200, { id: "em_1", status: "queued" }))
    assert_equal "em_1", client(scripted.url, clock: clock).get("em_1").id
    assert_equal [0.5, 1.0], clock.pauses
  end

  def test_retry_after_header
    now = Time.utc(2026, 1, 31, 12, 0, 0)
    { "0" => 0, "007" => 7, "120" => 120, "Sat, 31 Jan 2026 12:00:30 GMT" => 30,
      "Sat, 31 Jan 2026 11:59:59 GMT" => nil, "-1" => nil, "1.5" => nil, "+3" => nil, "1e3" => nil, "soon" => nil,
      "" => nil, "٣" => nil, "1, 2" => nil, "3\n" => nil, nil => nil }.each do |header, seconds|
      seconds.nil? ? assert_nil(RetryAfter.seconds(header, now), header) : assert_equal(seconds, RetryAfter.seconds(header, now))
    end
  end
end
