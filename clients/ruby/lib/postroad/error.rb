# frozen_string_literal: true

module Postroad
  # Everything that can go wrong with a request; each kind has a subclass. What is wrong with an argument is an
  # ArgumentError.
  class Error < StandardError
    RETRYABLE_STATUSES = [408, 429, 500, 502, 503, 504].freeze
    RETRYABLE_CODES = %w[idempotency_in_progress connection_failed timed_out].freeze
    private_constant :RETRYABLE_STATUSES, :RETRYABLE_CODES

    # The HTTP status; nil when there was no response.
    attr_reader :status

    # The code of the response, or "connection_failed", "timed_out" or "unexpected_response".
    attr_reader :code

    # What to quote when you ask the operator; nil when it is not known.
    attr_reader :request_id

    # How many seconds the server asks to wait; nil when it does not.
    attr_reader :retry_after

    # The key of the send, to repeat it later; nil when nothing was sent.
    attr_reader :idempotency_key

    # An error of the kind that follows from its status and code.
    def self.of(text, code:, status: nil, **others) # :nodoc:
      kind(status, code).new(text, code: code, status: status, **others)
    end

    def self.kind(status, code) # :nodoc:
      return InsufficientCreditsError if code == "insufficient_credits"

      KINDS_OF_STATUS.fetch(status) do
        case status
        when 400..499 then InvalidRequestError
        when 500..599 then ServerError
        when nil then KINDS_OF_CODE.fetch(code, UnexpectedResponseError)
        else UnexpectedResponseError
        end
      end
    end
    private_class_method :kind

    def initialize(text, code:, status: nil, request_id: nil, retry_after: nil, idempotency_key: nil, attempts: 1)
      @status = status
      @code = code
      @request_id = request_id
      @retry_after = retry_after
      @idempotency_key = idempotency_key
      notes = [request_id, ("#{attempts} attempts" if attempts > 1)].compact
      super([*status, "#{code}:", text, *("(#{notes.join(", ")})" if notes.any?)].join(" "))
    end

    # Whether the same request, with the same key, may succeed later.
    def retryable?
      RETRYABLE_STATUSES.include?(status) || RETRYABLE_CODES.include?(code)
    end

    def insufficient_credits?
      code == "insufficient_credits"
    end

    # Whether the key was used before, with another email.
    def idempotency_conflict?
      code == "idempotency_conflict"
    end
  end

  # Postroad does not accept the request: status 400, 413, 415, 422, or another 4xx without a class of its own.
  class InvalidRequestError < Error; end

  # The token, or the username and password, are not valid: status 401.
  class AuthenticationError < Error; end

  # The account has fewer credits than the email has recipients: status 402.
  class InsufficientCreditsError < Error; end

  # The credential may not do this, or the account is suspended: status 403.
  class PermissionDeniedError < Error; end

  # There is no message with this id: status 404.
  class NotFoundError < Error; end

  # The key was used with another email, or its first request is in progress: status 409.
  class IdempotencyError < Error; end

  # Too many requests, or more mail than the sender may send now: status 429.
  class RateLimitError < Error; end

  # The service, or a proxy before it, is out of order: status 5xx.
  class ServerError < Error; end

  # No connection, or one that was lost before the response was complete.
  class ConnectionFailedError < Error; end

  # No complete response in time; or a message that is not final after the time of Client#wait.
  class TimedOutError < Error
    # The message as it was when Client#wait ended; nil when no message was waited for.
    attr_reader :last_message

    def initialize(text, last_message: nil, **others)
      @last_message = last_message
      super(text, **others)
    end
  end

  # A response that Postroad does not give: a 2xx or 3xx of something else, or no HTTP at all.
  class UnexpectedResponseError < Error; end

  # A webhook that was not signed with the secret, or not recently.
  class SignatureVerificationError < Error; end

  class Error # :nodoc:
    KINDS_OF_STATUS = {
      401 => AuthenticationError,
      402 => InsufficientCreditsError,
      403 => PermissionDeniedError,
      404 => NotFoundError,
      409 => IdempotencyError,
      429 => RateLimitError
    }.freeze
    KINDS_OF_CODE = {
      "connection_failed" => ConnectionFailedError,
      "timed_out" => TimedOutError,
      "invalid_signature" => SignatureVerificationError
    }.freeze
    private_constant :KINDS_OF_STATUS, :KINDS_OF_CODE
  end
end
