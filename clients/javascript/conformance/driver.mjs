// Lets the conformance suite use the client as an application would: one JSON object a line in, one a line out.

import * as postroad from "postroad";
import { attachmentFromFile, verify } from "postroad/node";

const { Attachment, Postroad, PostroadError, parseEvent } = postroad;

const KINDS = {
  authentication: postroad.AuthenticationError,
  connection_failed: postroad.ConnectionFailedError,
  idempotency: postroad.IdempotencyError,
  insufficient_credits: postroad.InsufficientCreditsError,
  invalid_request: postroad.InvalidRequestError,
  not_found: postroad.NotFoundError,
  permission_denied: postroad.PermissionDeniedError,
  rate_limited: postroad.RateLimitError,
  server: postroad.ServerError,
  signature: postroad.SignatureVerificationError,
  timed_out: postroad.TimedOutError,
  unexpected_response: postroad.UnexpectedResponseError,
};

const OPERATIONS = {
  async send({ client, email, idempotency_key: idempotencyKey }) {
    return fromReceipt(await connect(client).send(await toEmail(email), { idempotencyKey }));
  },
  async get({ client, id }) {
    return fromMessage(await connect(client).get(id));
  },
  async wait({ client, id, timeout }) {
    return fromMessage(await connect(client).wait(id, { timeout: timeout * 1000 }));
  },
  async call({ client, name, arguments: given, parameters }) {
    const [method, owner] = name.split(".").map(toCamelCase).reverse();
    const connected = connect(client);
    if (name === "send_batch") {
      const emails = await Promise.all(given[0].map(toEmail));
      return connected.sendBatch(emails, { idempotencyKey: parameters.idempotency_key, allOrNothing: parameters.all_or_nothing });
    }
    const result = (owner ? connected[owner] : connected)[method](...given, ...(Object.keys(parameters).length ? [parameters] : []));
    return Symbol.asyncIterator in result ? collect(result) : result;
  },
  async parse_event({ body_base64: body, header, secrets, tolerance, now }) {
    return fromEvent(await parseEvent(Buffer.from(body, "base64"), header, secrets, tolerance, now));
  },
  async verify({ body_base64: body, header, secret, tolerance, now }) {
    return verify(Buffer.from(body, "base64"), header, secret, tolerance, now);
  },
};

function toCamelCase(name) {
  return name.replace(/_(.)/g, (_, letter) => letter.toUpperCase());
}

async function collect(items) {
  const all = [];
  for await (const item of items) all.push(item);
  return all;
}

function connect({ base_url: baseUrl, timeout, max_elapsed: maxElapsed, ...credential }) {
  const milliseconds = (seconds) => (seconds === undefined ? undefined : seconds * 1000);
  return new Postroad({
    baseUrl,
    timeout: milliseconds(timeout),
    maxElapsed: milliseconds(maxElapsed),
    ...credential,
  });
}

async function toEmail({ reply_to: replyTo, attachments, ...same }) {
  return { ...same, replyTo, attachments: attachments && (await Promise.all(attachments.map(toAttachment))) };
}

function toAttachment({ path, bytes_base64: bytes, filename, content_type: contentType, content_id: contentId }) {
  if (path !== undefined) return attachmentFromFile(path, { filename, contentType, contentId });
  return new Attachment({ filename, content: Buffer.from(bytes, "base64"), contentType, contentId });
}

function fromReceipt({ replyTo, billingStatus, recipientCount, creditsReserved, attachments, requestId, ...same }) {
  return {
    ...same,
    reply_to: replyTo,
    billing_status: billingStatus,
    recipient_count: recipientCount,
    credits_reserved: creditsReserved,
    attachments: attachments.map(({ filename, contentType, size, contentId }) => {
      return { filename, content_type: contentType, size, content_id: contentId };
    }),
    request_id: requestId,
  };
}

function fromMessage({ billingStatus, recipientCount, creditsReserved, createdAt, recipients, requestId, ...same }) {
  return {
    ...same,
    billing_status: billingStatus,
    recipient_count: recipientCount,
    credits_reserved: creditsReserved,
    created_at: createdAt, // JSON writes a Date in RFC 3339.
    recipients: recipients.map(fromRecipient),
    request_id: requestId,
  };
}

function fromRecipient({ id, email, status, ...rest }) {
  return {
    id,
    email,
    status,
    billing_status: rest.billingStatus,
    attempt_count: rest.attemptCount,
    last_smtp_code: rest.lastSmtpCode,
    last_smtp_response: rest.lastSmtpResponse,
    delivered_at: rest.deliveredAt,
    bounced_at: rest.bouncedAt,
  };
}

function fromEvent({ id, type, createdAt, data: { emailId, recipientId, smtpCode, smtpResponse, ...same } }) {
  const renamed = { email_id: emailId, recipient_id: recipientId, smtp_code: smtpCode, smtp_response: smtpResponse };
  return { id, type, created_at: createdAt, data: { ...same, ...renamed } };
}

function fromError(error) {
  return {
    kind: Object.keys(KINDS).filter((kind) => error instanceof KINDS[kind]).join(),
    status: error.status,
    code: error.code,
    request_id: error.requestId,
    message: error.message,
    retry_after: error.retryAfter,
    idempotency_key: error.idempotencyKey,
    is_retryable: error.isRetryable,
    is_insufficient_credits: error.isInsufficientCredits,
    is_idempotency_conflict: error.isIdempotencyConflict,
  };
}

async function answer(line) {
  const { operation, ...members } = JSON.parse(line);
  try {
    return { result: await OPERATIONS[operation](members) };
  } catch (error) {
    if (error instanceof PostroadError) return { error: fromError(error) };
    if (error instanceof TypeError) return { refused: error.message };
    throw error;
  }
}

// Not node:readline, which also ends a line at U+2028, and JSON may have that in a string.
let rest = "";
for await (const chunk of process.stdin.setEncoding("utf8")) {
  const lines = (rest + chunk).split("\n");
  rest = lines.pop();
  for (const line of lines) process.stdout.write(`${JSON.stringify(await answer(line))}\n`);
}
