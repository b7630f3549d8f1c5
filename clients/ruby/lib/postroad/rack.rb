# frozen_string_literal: true

# Webhooks in any Rack application: require "postroad/rack", then
#
#   use Postroad::WebhookReceiver, path: "/postroad", secret: ENV.fetch("POSTROAD_WEBHOOK_SECRET") do |event|
#     puts event.type
#   end

require "postroad"

module Postroad
  # Answers the requests to its path: it verifies them and gives their events to the block. All others go on to the
  # application. An error of the block is one of the application, and Postroad sends the event again.
  class WebhookReceiver
    LARGEST_BODY = 1024 * 1024
    private_constant :LARGEST_BODY

    # secret is one, or an Array of which one must match.
    def initialize(app, path:, secret:, &receive)
      raise ArgumentError, "a webhook needs a block that gets its events" unless receive
      raise ArgumentError, "a webhook needs a secret" if Array(secret).empty? || Array(secret).any? { |each| each.to_s.empty? }

      @app = app
      @path = path
      @secret = secret
      @receive = receive
    end

    def call(env)
      return @app.call(env) unless env["PATH_INFO"] == @path
      return [405, { "allow" => "POST" }, []] unless env["REQUEST_METHOD"] == "POST"

      body = env["rack.input"].read(LARGEST_BODY + 1).to_s
      return [413, {}, []] if body.bytesize > LARGEST_BODY

      receive(body, env["HTTP_SERVICE_SIGNATURE"])
    end

    # Without the secret.
    def inspect
      "#<Postroad::WebhookReceiver #{@path}>"
    end

    private

    def receive(body, header)
      begin
        event = Webhook.parse_event(body, header, @secret)
      rescue SignatureVerificationError, ArgumentError
        return [400, {}, []]
      end
      @receive.call(event)
      [204, {}, []]
    end
  end
end
