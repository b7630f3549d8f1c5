// Lets the conformance suite use the client as an application would: one JSON object a line in, one a line out.

import { Attachment, Postroad, PostroadError, verify } from "postroad";

const OPERATIONS = {
  async send({ client, email, idempotency_key: idempotencyKey }) {
    return fromReceipt(await connect(client).send(await toEmail(email), { idempotencyKey }));
  },
  async get({ client, id }) {
    return fromMessage(await connect(client).get(id));
  },
  async verify({ body_base64: body, header, secret, tolerance, now }) {
    return verify(Buffer.from(body, "base64"), header, secret, tolerance, now);
  },
};

function connect({ base_url: baseUrl, timeout, max_retries: maxRetries, max_elapsed: maxElapsed, ...credential }) {
  const milliseconds = (seconds) => (seconds === undefined ? undefined : seconds * 1000);
  return new Postroad({
    baseUrl,
    timeout: milliseconds(timeout),
    maxRetries,
    maxElapsed: milliseconds(maxElapsed),
    ...credential,
  });
}

async function toEmail({ reply_to: replyTo, attachments, ...same }) {
  return { ...same, replyTo, attachments: attachments && (await Promise.all(attachments.map(toAttachment))) };
}

function toAttachment({ path, bytes_base64: bytes, filename, content_type: contentType, content_id: contentId }) {
  if (path !== undefined) return Attachment.fromFile(path, { filename, contentType, contentId });
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

function fromError(error) {
  return {
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
