# frozen_string_literal: true

require "securerandom"

module Postroad
  # Sends mail through a Postroad, and reads what became of it. One client may be used by many threads.
  #
  #   client = Postroad::Client.new("https://mail.example.com", token: ENV.fetch("POSTROAD_TOKEN"))
  #   receipt = client.deliver(Postroad::Email.new(from: "hello@example.com", to: "ada@example.net", text: "Hello"))
  #   client.get(receipt.id).status
  class Client
    ID = /\A[A-Za-z0-9_-]+\z/
    FIRST_POLL = 1.0
    LONGEST_POLL = 10.0
    private_constant :ID, :FIRST_POLL, :LONGEST_POLL

    # The credential is a token (an API key or a JWT), or the username and password of an SMTP credential.
    #
    # timeout:: seconds for one attempt, from connecting to the last byte
    # max_elapsed:: seconds for everything, attempts and pauses; 0 turns retries off
    # ca_file:: certificates to trust in the place of the system's, as a PEM file
    #
    # The clock is for the tests of this library.
    def initialize(base_url, username: nil, password: nil, token: nil, timeout: 30, max_elapsed: 60, ca_file: nil,
                   clock: Clock)
      @transport = Transport.new(base_url, ca_file: ca_file, clock: clock)
      @authorization = Credential.authorization(username, password, token)
      @retries = Retries.new(timeout: timeout, max_elapsed: max_elapsed, clock: clock)
      @clock = clock
      freeze
    end

    # Sends an Email and gives a Receipt, or raises an Error. The key makes it safe to send again: the server takes
    # an email with a key that it knows only once. Without one, a random key serves the attempts of this call.
    def deliver(email, idempotency_key: nil)
      raise ArgumentError, "email must be a Postroad::Email, not #{email.class}" unless email.is_a?(Email)

      key = Credential.header_value("idempotency_key", idempotency_key || SecureRandom.uuid)
      headers = { "Content-Type" => "application/json", "Idempotency-Key" => key }
      exchange(Receipt, Net::HTTP::Post, "/emails", headers, email.to_json, idempotency_key: key)
    end

    # Gives the Message with this id, or raises an Error.
    def get(id)
      raise ArgumentError, "not a message id: #{id.inspect}" unless id.is_a?(String) && id.ascii_only? && ID.match?(id)

      exchange(Message, Net::HTTP::Get, "/emails/#{id}", {}, nil)
    end

    # Gives the Message with this id as soon as it is final: every recipient has its result. It is read
    # after 1 second, then in pauses that grow to 10. Raises a TimedOutError when it is not final after timeout seconds,
    # of which 0 reads it once.
    def wait(id, timeout: 300)
      deadline = @clock.monotonic + Arguments.seconds("timeout", timeout)
      pause = FIRST_POLL
      loop do
        message = get(id)
        return message if message.final?

        left = deadline - @clock.monotonic
        unless left.positive?
          raise TimedOutError.new("#{id} is not final after #{timeout} s", code: "timed_out", last_message: message)
        end

        @clock.sleep([pause, left].min)
        pause = [pause * 1.5, LONGEST_POLL].min
      end
    end

    # Without the credential.
    def inspect
      "#<Postroad::Client #{@transport.base_url}>"
    end

    private

    def exchange(type, method, path, headers, body, **context)
      headers = common_headers.merge(headers)
      @retries.run do |attempt, seconds|
        response = @transport.call(method, path, headers, body, seconds)
        Answer.new(response, now: @clock.time, attempts: attempt, **context).value(type)
      rescue Transport::Failure => e
        raise Error.of(e.message, code: e.code, attempts: attempt, **context), cause: e.cause
      end
    end

    def common_headers
      {
        "Authorization" => @authorization,
        "Accept" => "application/json",
        "Accept-Encoding" => "identity",
        "User-Agent" => "postroad-ruby/#{VERSION}"
      }
    end
  end
end
