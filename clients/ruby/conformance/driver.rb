# frozen_string_literal: true

# The driver of the conformance suite: reads calls as lines of JSON, makes them, and writes what came of them.

$LOAD_PATH.unshift(File.expand_path("../lib", __dir__))
require "json"
require "postroad"

def client(options)
  options = options.transform_keys(&:to_sym)
  Postroad::Client.new(options.delete(:base_url), **options)
end

def attachment(members)
  members = members.transform_keys(&:to_sym)
  path = members.delete(:path)
  return Postroad::Attachment.from_file(path, **members) if path

  Postroad::Attachment.new(bytes: members.delete(:bytes_base64).unpack1("m0"), **members)
end

def email(members)
  members = members.transform_keys(&:to_sym)
  members[:attachments] = members[:attachments].map { |each| attachment(each) } if members[:attachments]
  Postroad::Email.new(**members)
end

# A value of the library with the names of the interface.
def plain(value)
  case value
  when Struct then value.to_h.transform_values { |member| plain(member) }
  when Array, Enumerator then value.map { |member| plain(member) }
  when Time then value.iso8601(3)
  else value
  end
end

def called(client, call)
  *owners, method = call["name"].split(".")
  arguments = call["arguments"]
  if method == "send_batch"
    method = "deliver_batch"
    arguments = [arguments[0].map { |each| email(each) }]
  end
  owners.reduce(client) { |owner, name| owner.public_send(name) }
        .public_send(method, *arguments, **call["parameters"].transform_keys(&:to_sym))
end

def result(call)
  case call.fetch("operation")
  when "send" then client(call["client"]).deliver(email(call["email"]), idempotency_key: call["idempotency_key"])
  when "call" then called(client(call["client"]), call)
  when "get" then client(call["client"]).get(call["id"])
  when "wait" then client(call["client"]).wait(call["id"], timeout: call["timeout"])
  when "parse_event"
    Postroad::Webhook.parse_event(call["body_base64"].unpack1("m0"), call["header"], call["secrets"],
                                  tolerance: call["tolerance"], now: call["now"])
  when "verify"
    Postroad::Webhook.verify(call["body_base64"].unpack1("m0"), call["header"], call["secret"],
                             tolerance: call["tolerance"], now: call["now"])
  end
end

KINDS = {
  Postroad::InvalidRequestError => "invalid_request",
  Postroad::AuthenticationError => "authentication",
  Postroad::InsufficientCreditsError => "insufficient_credits",
  Postroad::PermissionDeniedError => "permission_denied",
  Postroad::NotFoundError => "not_found",
  Postroad::IdempotencyError => "idempotency",
  Postroad::RateLimitError => "rate_limited",
  Postroad::ServerError => "server",
  Postroad::ConnectionFailedError => "connection_failed",
  Postroad::TimedOutError => "timed_out",
  Postroad::UnexpectedResponseError => "unexpected_response",
  Postroad::SignatureVerificationError => "signature"
}.freeze

def error(failure)
  {
    kind: KINDS[failure.class],
    status: failure.status,
    code: failure.code,
    request_id: failure.request_id,
    message: failure.message,
    retry_after: failure.retry_after,
    idempotency_key: failure.idempotency_key,
    is_retryable: failure.retryable?,
    is_insufficient_credits: failure.insufficient_credits?,
    is_idempotency_conflict: failure.idempotency_conflict?
  }
end

def answer(call)
  { result: plain(result(call)) }
rescue Postroad::Error => e
  { error: error(e) }
rescue ArgumentError => e
  { refused: e.message }
end

$stdout.sync = true
$stdin.each_line { |line| puts JSON.generate(answer(JSON.parse(line))) }
