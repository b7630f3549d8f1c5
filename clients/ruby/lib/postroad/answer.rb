# frozen_string_literal: true

module Postroad
  # Makes of an HTTP response what the caller gets: a value, or an Error.
  class Answer
    # The context is what an error has to say of the request: idempotency_key and attempts.
    def initialize(response, now:, **context)
      @response = response
      @now = now
      @context = context
    end

    # A Receipt or a Message.
    def value(type)
      raise failure unless @response.status.between?(200, 299)
      raise unexpected("the response is larger than 4 MiB") if @response.too_large?

      begin
        type.read(Members.new(object))
      rescue Members::WrongType => e
        raise unexpected("the response is not a #{type.name.split("::").last.downcase}: #{e.message}#{quotation}"), cause: nil
      end
    end

    private

    def failure
      status = @response.status
      return unexpected(redirect) if status.between?(300, 399)
      return unexpected("the response is not one of Postroad#{quotation}") unless status >= 400 && refusal?

      reason = object["error"]
      error(reason.is_a?(String) ? reason : "the server gives no reason", object["code"])
    end

    def refusal?
      object.is_a?(Hash) && object["code"].is_a?(String) && !object["code"].empty?
    end

    def redirect
      target = Text.excerpt(@response.headers.fetch("location", "nowhere"))
      "the server redirects to #{target}; redirects are not followed"
    end

    def quotation
      text = Text.excerpt(@response.body)
      text.empty? ? "; it is empty" : ": #{text}"
    end

    def unexpected(text)
      error(text, "unexpected_response")
    end

    def error(text, code)
      headers = @response.headers
      Error.of(text, code: code, status: @response.status, request_id: request_id,
                     retry_after: RetryAfter.seconds(headers["retry-after"], @now), **@context)
    end

    def request_id
      given = object["request_id"] if object.is_a?(Hash)
      given.is_a?(String) ? given : @response.headers["x-request-id"]
    end

    # A 204 is an object without members.
    def parsed
      return {} if @response.status == 204

      @response.too_large? ? nil : Text.json(@response.body)
    end

    # The body as JSON; nil when it is none.
    def object
      return @object if defined?(@object)

      @object = parsed
    end
  end
end
