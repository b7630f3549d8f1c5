# frozen_string_literal: true

module Postroad
  # Everything that can go wrong with a request. What is wrong with an argument is an ArgumentError.
  class Error < StandardError
    RETRYABLE_STATUSES = [429, 503].freeze
    RETRYABLE_CODES = %w[idempotency_in_progress connection_failed timed_out].freeze
    private_constant :RETRYABLE_STATUSES, :RETRYABLE_CODES

    # The HTTP status; nil when there was no answer.
    attr_reader :status

    # The code of the answer, or "connection_failed", "timed_out" or "unexpected_response".
    attr_reader :code

    # What to quote when you ask the operator; nil when it is not known.
    attr_reader :request_id

    # How many seconds the server asks to wait; nil when it does not.
    attr_reader :retry_after

    # The key of the send, to repeat it later; nil for a get.
    attr_reader :idempotency_key

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
end
