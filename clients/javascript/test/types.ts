// Uses every type as an application would. The compiler checks it; nobody runs it.

import {
  Attachment, AuthenticationError, ConnectionFailedError, IdempotencyError, InsufficientCreditsError, InvalidRequestError,
  NotFoundError, PermissionDeniedError, Postroad, PostroadError, RateLimitError, ServerError, SignatureVerificationError,
  TimedOutError, UnexpectedResponseError, parseEvent,
} from "postroad";
import { attachmentFromFile, verify } from "postroad/node";
import type {
  AttachmentMembers, AttachmentMetadata, BillingStatus, Credential, Email, ErrorCode, ErrorDetails, Event, EventData, EventType, GetOptions, Message,
  MessageStatus, PostroadOptions, Receipt, Recipient, RecipientStatus, SendOptions, Source, WaitOptions,
} from "postroad";

const baseUrl = "https://mail.example.com";

export function clients(ownFetch: typeof fetch): Postroad[] {
  const credential: Credential = { username: "u", password: "p" };
  const options: PostroadOptions = { baseUrl: new URL(baseUrl), ...credential, timeout: 1, maxElapsed: 0 };
  new Postroad({ baseUrl, token: "t", fetch: (url, init) => ownFetch(url, { ...init, keepalive: true }) });
  // @ts-expect-error There is no credential.
  new Postroad({ baseUrl });
  // @ts-expect-error There are two.
  new Postroad({ baseUrl, token: "t", username: "u", password: "p" });
  // @ts-expect-error There is half of one.
  new Postroad({ baseUrl, username: "u" });
  // @ts-expect-error There is no base URL.
  new Postroad({ token: "t" });
  // @ts-expect-error The name is another.
  new Postroad({ baseUrl, token: "t", max_elapsed: 1 });
  return [new Postroad(options), new Postroad({ baseUrl, token: "t", fetch: ownFetch })];
}

export async function sending(postroad: Postroad, signal: AbortSignal): Promise<Receipt> {
  const members: AttachmentMembers = { filename: "a.txt", content: new Uint8Array(1), contentType: "text/plain", contentId: "a" };
  const file: Attachment = await attachmentFromFile("receipt.pdf", { filename: "b.pdf" });
  const email: Email = {
    from: "a@example.com",
    to: ["b@example.net"],
    cc: "c@example.net",
    bcc: ["d@example.net"],
    replyTo: ["e@example.com", "f@example.com"],
    subject: undefined,
    html: "<p>Hi",
    headers: { "X-A": "1" },
    tags: ["t"],
    attachments: [file, new Attachment(members), { filename: "c.txt", content: Buffer.from("c") }],
  };
  await postroad.send({ from: "a@example.com", to: "b@example.net", template: "welcome", variables: { name: "Ada", n: 1 } });
  // @ts-expect-error The name is another.
  await postroad.send({ from: "a@example.com", to: "b@example.net", reply_to: "c@example.com" });
  // @ts-expect-error Nobody is to get it.
  await postroad.send({ from: "a@example.com", text: "Hi." });
  // @ts-expect-error A text could be base64, or not.
  await postroad.send({ from: "a@example.com", to: "b@example.net", attachments: [{ filename: "a", content: "text" }] });
  // @ts-expect-error The promise of an attachment is none.
  await postroad.send({ from: "a@example.com", to: "b@example.net", attachments: [attachmentFromFile("a")] });
  // @ts-expect-error A key is an option.
  await postroad.send(email, "order-1042");
  const options: SendOptions = { idempotencyKey: "order-1042", signal };
  return postroad.send(email, options);
}

export async function reading(postroad: Postroad, receipt: Receipt, options: GetOptions): Promise<unknown[]> {
  const message: Message = await postroad.get(receipt.id, options);
  const status: MessageStatus = message.status;
  const created: number | undefined = message.createdAt?.getTime();
  const recipient: Recipient | undefined = message.recipients[0];
  const result: RecipientStatus | null | undefined = recipient?.status;
  const metadata: AttachmentMetadata | undefined = receipt.attachments[0];
  const words: (BillingStatus | Source | null)[] = [receipt.billingStatus, message.source];
  const isNew: boolean = status === "a status of next year";
  // @ts-expect-error It may not be there.
  message.createdAt.getTime();
  // @ts-expect-error What came is not changed.
  message.status = "delivered";
  // @ts-expect-error A get has no key.
  await postroad.get("em_1", { idempotencyKey: "a" });
  const delivered: string | undefined = recipient?.deliveredAt?.toISOString();
  return [created, result, metadata?.size?.toFixed(), words, isNew, delivered, receipt.headers["X-A"]];
}

export async function waiting(postroad: Postroad, options: WaitOptions): Promise<Message | null> {
  try {
    return await postroad.wait("em_1", { timeout: 1, ...options });
  } catch (error) {
    return error instanceof TimedOutError ? error.lastMessage : null;
  }
}

export const kinds: (typeof PostroadError)[] = [
  AuthenticationError, ConnectionFailedError, IdempotencyError, InsufficientCreditsError, InvalidRequestError, NotFoundError,
  PermissionDeniedError, RateLimitError, ServerError, SignatureVerificationError, UnexpectedResponseError,
];

export async function hearing(body: Uint8Array, header: string | null): Promise<EventData> {
  // @ts-expect-error There may be no secret.
  await parseEvent(body, header, process.env.SECRET);
  const event: Event = await parseEvent(body, header, ["whsec_new", "whsec_old"], 60, 1_700_000_000);
  const type: EventType = event.type;
  // @ts-expect-error It may not be there.
  event.data.to.length;
  return type === "email.bounced" ? event.data : (await parseEvent("text", undefined, "whsec_x")).data;
}

export function failing(error: unknown): string {
  const details: ErrorDetails = { code: "rate_limited", status: 429, cause: error };
  const failure: Error = new PostroadError("too fast", details);
  if (!(error instanceof PostroadError)) return failure.message;
  const code: ErrorCode = error.code;
  const numbers: (number | null)[] = [error.status, error.retryAfter];
  const texts: (string | null)[] = [error.requestId, error.idempotencyKey];
  const helpers: boolean[] = [error.isRetryable, error.isInsufficientCredits, error.isIdempotencyConflict];
  // @ts-expect-error They are no functions.
  error.isRetryable();
  return `${code} ${numbers} ${texts} ${helpers} ${error.cause}`;
}

export function receiving(headers: NodeJS.Dict<string | string[]>, body: Buffer): boolean {
  // @ts-expect-error A body that was parsed is not the one that was signed.
  verify({ type: "email.delivered" }, "t=1", "whsec_x");
  // @ts-expect-error There may be no secret.
  verify(body, null, process.env.SECRET);
  return verify("text", undefined, "whsec_x", 60, 1_700_000_000) && verify(body, headers["service-signature"], "whsec_x");
}
