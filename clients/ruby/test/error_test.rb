# frozen_string_literal: true

require_relative "helper"

# Which kind an error is of.
class ErrorTest < PostroadTest
  def test_kinds_of_responses
    { [400, "invalid_request"] => Postroad::InvalidRequestError,
      [408, nil] => Postroad::InvalidRequestError,
      [413, "payload_too_large"] => Postroad::InvalidRequestError,
      [415, "invalid_request"] => Postroad::InvalidRequestError,
      [422, "invalid_request"] => Postroad::InvalidRequestError,
      [401, "unauthorized"] => Postroad::AuthenticationError,
      [402, "insufficient_credits"] => Postroad::InsufficientCreditsError,
      [402, nil] => Postroad::InsufficientCreditsError,
      [403, "insufficient_credits"] => Postroad::InsufficientCreditsError,
      [403, "account_suspended"] => Postroad::PermissionDeniedError,
      [404, "not_found"] => Postroad::NotFoundError,
      [409, "idempotency_conflict"] => Postroad::IdempotencyError,
      [409, "idempotency_in_progress"] => Postroad::IdempotencyError,
      [429, "warmup_limited"] => Postroad::RateLimitError,
      [500, "internal_error"] => Postroad::ServerError,
      [502, nil] => Postroad::ServerError,
      [503, "timed_out"] => Postroad::ServerError,
      [599, nil] => Postroad::ServerError,
      [200, nil] => Postroad::UnexpectedResponseError,
      [302, nil] => Postroad::UnexpectedResponseError }.each do |(status, code), kind|
      error = failure(ScriptedServer.answer(status, code ? { code: code } : "<html>"))
      assert_instance_of kind, error, "#{status} #{code}"
      assert_equal [status, code || "unexpected_response"], [error.status, error.code]
    end
  end

  def test_kinds_without_a_response
    assert_instance_of Postroad::ConnectionFailedError, failure("")
    assert_instance_of Postroad::TimedOutError, failure(->(socket) { socket.read }, timeout: 0.05)
    assert_instance_of Postroad::UnexpectedResponseError, failure("220 mail.example.com ESMTP\r\n")
  end

  def test_all_are_errors_of_postroad
    kinds = Postroad.constants.map { |name| Postroad.const_get(name) }.select { |each| each.is_a?(Class) && each < StandardError }
    assert_equal 13, kinds.size
    assert(kinds.all? { |kind| kind <= Postroad::Error })
  end
end
