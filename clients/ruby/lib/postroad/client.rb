# frozen_string_literal: true

module Postroad
  # Sends mail through a Postroad, and reads what became of it. One client may be used by many threads.
  #
  #   client = Postroad::Client.new("https://mail.example.com", token: ENV.fetch("POSTROAD_API_KEY"))
  #   receipt = client.deliver(Postroad::Email.new(from: "hello@example.com", to: "ada@example.net", text: "Hello"))
  #   client.get(receipt.id).status
  class Client
    FIRST_POLL = 1.0
    LONGEST_POLL = 10.0
    private_constant :FIRST_POLL, :LONGEST_POLL

    # The resources of the account.
    attr_reader :messages, :templates, :suppressions, :domains, :webhooks, :api_keys

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
      @clock = clock
      retries = Retries.new(timeout: timeout, max_elapsed: max_elapsed, clock: clock)
      @api = Api.new(@transport, Credential.authorization(username, password, token), retries, clock)
      @messages = Messages.new(@api)
      @templates = Templates.new(@api)
      @suppressions = Suppressions.new(@api)
      @domains = Domains.new(@api)
      @webhooks = Webhooks.new(@api)
      @api_keys = ApiKeys.new(@api)
      freeze
    end

    # Sends an Email and gives a Receipt, or raises an Error. The key makes it safe to send again: the server takes
    # an email with a key that it knows only once. Without one, a random key serves the attempts of this call.
    def deliver(email, idempotency_key: nil)
      @api.send_with_key("/emails", payload(email), idempotency_key, type: Receipt)
    end

    # Sends many Emails with one request, and gives a Hash for each, with its "id" or its "error".
    def deliver_batch(emails, idempotency_key: nil, all_or_nothing: false)
      body = { emails: emails.map { |email| payload(email) } }
      body[:all_or_nothing] = true if all_or_nothing
      @api.send_with_key("/emails/batch", body, idempotency_key)
    end

    # Sends one template to many recipients, each with an email of their own. The members have the names of the API.
    def deliver_template_batch(from:, template:, recipients:, idempotency_key: nil, **others)
      body = { from: from, template: template, recipients: recipients, **others }
      @api.send_with_key("/emails/batch", body, idempotency_key)
    end

    # Gives the Message with this id, or raises an Error. If asked, it says when each recipient is tried next.
    def get(id, include_queue: false)
      query = include_queue ? { include: "queue" } : {}
      @api.call(:get, "/emails/#{Api.id(id)}", query: query, type: Message)
    end

    # Sends a scheduled email at another Time; nil sends it now.
    def reschedule(id, send_at)
      @api.call(:patch, "/emails/#{Api.id(id)}", body: { send_at: send_at })
    end

    # Cancels the recipients for which no attempt has begun, and says of each whether it is canceled.
    def cancel(id)
      @api.call(:post, "/emails/#{Api.id(id)}/cancel", repeatable: true)
    end

    # What became of the mail of the last "24h", which is the default, "7d" or "30d".
    def statistics(period: nil)
      @api.call(:get, "/v1/statistics", query: { period: period }, member: "statistics")
    end

    # The balance, and whether the account may send.
    def account
      @api.call(:get, "/v1/account", member: "account")
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

    def payload(email)
      raise ArgumentError, "email must be a Postroad::Email, not #{email.class}" unless email.is_a?(Email)

      email.payload
    end
  end
end
