// The types of the package, and what people read in their editors.

/** Either a token (an API key or a JWT), or the username and password of an SMTP credential. */
export type Credential =
  | { token: string; username?: undefined; password?: undefined }
  | { username: string; password: string; token?: undefined };

export type PostroadOptions = Credential & {
  /** Where Postroad is, such as `https://mail.example.com`. */
  baseUrl: string | URL;
  /** Milliseconds for one attempt, from connecting to the last byte; 30,000. */
  timeout?: number | undefined;
  /** Milliseconds for all attempts and the pauses between them; 60,000. With 0 there is one attempt. */
  maxElapsed?: number | undefined;
  /** Takes the place of the global `fetch`, for instance to go through a proxy. It must heed `redirect` and `signal`. */
  fetch?: ((url: string, init: RequestInit) => Promise<Response>) | undefined;
};

export interface SendOptions {
  /** Names this email: sent twice with the same key, it goes out once. A random one is made when you give none. */
  idempotencyKey?: string | undefined;
  /** Ends the call, which then rejects with the signal's reason. */
  signal?: AbortSignal | undefined;
}

export interface GetOptions {
  /** Adds to each recipient when it is tried next, and why not earlier. */
  includeQueue?: boolean | undefined;
  /** Ends the call, which then rejects with the signal's reason. */
  signal?: AbortSignal | undefined;
}

export interface WaitOptions {
  /** Milliseconds until the message has to be final; 300,000. */
  timeout?: number | undefined;
  /** Ends the call, which then rejects with the signal's reason. */
  signal?: AbortSignal | undefined;
}

/** An email to send. It needs one of `text`, `html`, `template` and `attachments`. */
export interface Email {
  from: string;
  to: string | readonly string[];
  cc?: string | readonly string[] | undefined;
  bcc?: string | readonly string[] | undefined;
  /** One address, or a list of 2 to 10. */
  replyTo?: string | readonly string[] | undefined;
  /** May be left out when the template has one. */
  subject?: string | undefined;
  text?: string | undefined;
  html?: string | undefined;
  /** The alias of a template. */
  template?: string | undefined;
  /** Values for the template's placeholders. */
  variables?: Readonly<Record<string, unknown>> | undefined;
  headers?: Readonly<Record<string, string>> | undefined;
  tags?: string | readonly string[] | undefined;
  attachments?: readonly (Attachment | AttachmentMembers)[] | undefined;
  /** When to send, up to 30 days ahead; at once when not given. */
  sendAt?: Date | string | undefined;
  /** Seconds after which delivery is no longer tried. */
  expiresIn?: number | undefined;
  /** Your own data, which is returned and can be searched for. */
  metadata?: Readonly<Record<string, string>> | undefined;
  /** Adds a one-click unsubscribe link, and sends nothing to those who left the list. */
  unsubscribe?: { readonly list: string } | undefined;
}

export interface AttachmentMembers {
  /** Without a path. */
  filename: string;
  /** The bytes; a `Buffer` will do. */
  content: Uint8Array;
  /** Derived from the file name by the server when you give none. */
  contentType?: string | null | undefined;
  /** Makes it an image inside the HTML, which refers to it as `cid:<contentId>`. */
  contentId?: string | null | undefined;
}

/** A file that goes with an email. `attachmentFromFile` of `postroad/node` reads one from disk. */
export class Attachment {
  constructor(members: AttachmentMembers);
  readonly filename: string;
  readonly content: Uint8Array;
  readonly contentType: string | null;
  readonly contentId: string | null;
}

/** A word that is known, or one that a newer server says. */
type Word<Known extends string> = Known | (string & {});

export type MessageStatus = Word<"queued" | "delivered" | "partial" | "failed">;
export type RecipientStatus = Word<"queued" | "deferred" | "delivered" | "bounced" | "failed" | "canceled" | "expired">;
export type BillingStatus = Word<"reserved" | "settled" | "released">;
export type Source = Word<"api" | "smtp" | "test">;

/** Postroad has stored an email and will deliver it. What the server left out is null, or empty. */
export interface Receipt {
  readonly id: string;
  readonly status: MessageStatus | null;
  readonly source: Source | null;
  readonly from: string | null;
  readonly to: readonly string[];
  readonly cc: readonly string[];
  readonly bcc: readonly string[];
  /** A list where several were given. */
  readonly replyTo: string | readonly string[] | null;
  readonly subject: string | null;
  readonly billingStatus: BillingStatus | null;
  readonly recipientCount: number | null;
  readonly creditsReserved: number | null;
  readonly headers: Readonly<Record<string, string>>;
  readonly tags: readonly string[];
  readonly attachments: readonly AttachmentMetadata[];
  readonly requestId: string | null;
  readonly sendAt: Date | null;
  readonly expiresAt: Date | null;
  readonly metadata: Readonly<Record<string, string>>;
}

export interface AttachmentMetadata {
  readonly filename: string | null;
  readonly contentType: string | null;
  readonly size: number | null;
  readonly contentId: string | null;
}

/** What has become of an email. It is `queued` until every recipient has a final result. */
export interface Message {
  readonly id: string;
  readonly status: MessageStatus;
  readonly source: Source | null;
  readonly from: string | null;
  readonly subject: string | null;
  readonly billingStatus: BillingStatus | null;
  readonly recipientCount: number | null;
  readonly creditsReserved: number | null;
  readonly createdAt: Date | null;
  readonly recipients: readonly Recipient[];
  readonly requestId: string | null;
  readonly sendAt: Date | null;
  readonly expiresAt: Date | null;
  readonly metadata: Readonly<Record<string, string>>;
}

export interface Recipient {
  readonly id: string | null;
  readonly email: string | null;
  readonly status: RecipientStatus | null;
  readonly billingStatus: BillingStatus | null;
  readonly attemptCount: number | null;
  /** The last code and words of the destination's mail server. */
  readonly lastSmtpCode: number | null;
  readonly lastSmtpResponse: string | null;
  readonly deliveredAt: Date | null;
  readonly bouncedAt: Date | null;
  /** With `includeQueue`: when it is tried next, and why not earlier. */
  readonly queue: PlainObject | null;
}

/** An object of the API, with the API's own names, as `/docs` of your server describes it. */
export type PlainObject = { readonly [name: string]: any };
/** Filters of a list, or members of a request, with the API's own names. What is undefined is not sent. */
export type Parameters = { readonly [name: string]: unknown };
/** The items of a list; the next page is read when it is needed. */
export type Items = AsyncGenerator<PlainObject, void, undefined>;

export interface BatchOptions extends SendOptions {
  /** The first error refuses the whole batch. */
  allOrNothing?: boolean | undefined;
}

/** The message log. */
export interface Messages {
  list(filters?: Parameters): Items;
  get(id: string): Promise<PlainObject>;
  retry(id: string, members?: { recipient_id?: string }): Promise<PlainObject>;
}

export interface Templates {
  list(filters?: Parameters): Items;
  get(alias: string): Promise<PlainObject>;
  save(alias: string, members: { subject: string; text?: string; html?: string }): Promise<PlainObject>;
  delete(alias: string): Promise<null>;
  preview(alias: string, members?: { variables?: Parameters }): Promise<PlainObject>;
}

export interface Suppressions {
  list(filters?: Parameters): Items;
  create(members: { email: string; reason?: string }): Promise<PlainObject>;
  get(email: string): Promise<PlainObject>;
  delete(email: string): Promise<null>;
}

export interface Domains {
  list(filters?: Parameters): Items;
  create(members: { name: string }): Promise<PlainObject>;
  get(id: string): Promise<PlainObject>;
  delete(id: string): Promise<null>;
  check(id: string): Promise<PlainObject>;
  rotateKey(id: string): Promise<PlainObject>;
}

export interface Webhooks {
  list(): Items;
  /** The result has the `webhook` and, this once, its `secret`. */
  create(members: { url: string } & Parameters): Promise<PlainObject>;
  get(id: string): Promise<PlainObject>;
  update(id: string, members: Parameters): Promise<PlainObject>;
  delete(id: string): Promise<null>;
  /** The new secret. */
  rotateSecret(id: string, members?: { overlap_hours?: number }): Promise<string>;
  ping(id: string): Promise<PlainObject>;
  deliveries(id: string, filters?: Parameters): Items;
  getDelivery(id: string, deliveryId: string): Promise<PlainObject>;
  replay(id: string, deliveryId: string): Promise<PlainObject>;
  replayFailed(id: string, members: Parameters): Promise<PlainObject>;
}

export interface ApiKeys {
  list(filters?: Parameters): Items;
  /** The result has the `api_key` and, this once, its `secret`. */
  create(members: { name: string } & Parameters): Promise<PlainObject>;
  update(id: string, members: Parameters): Promise<PlainObject>;
  revoke(id: string): Promise<null>;
}

/** A client. One is enough for a whole application. Its calls reject with a `PostroadError`; bad arguments are a `TypeError`. */
export class Postroad {
  constructor(options: PostroadOptions);
  send(email: Email, options?: SendOptions): Promise<Receipt>;
  get(id: string, options?: GetOptions): Promise<Message>;
  /** The message, once every recipient is delivered, bounced or failed; a `TimedOutError` when they are not in time. */
  wait(id: string, options?: WaitOptions): Promise<Message>;
  /** Up to 100 emails under one key. Each result has the `id` of its message, or its `error`. */
  sendBatch(emails: readonly Email[], options?: BatchOptions): Promise<PlainObject[]>;
  /** One template for up to 500 recipients, with the members of `POST /emails/batch`. */
  sendTemplateBatch(members: Parameters, options?: SendOptions): Promise<PlainObject[]>;
  /** Sends a scheduled message at another time; null is now. */
  reschedule(id: string, sendAt: Date | string | null): Promise<PlainObject>;
  /** Cancels the recipients for which no attempt has begun. */
  cancel(id: string): Promise<PlainObject>;
  statistics(period?: "24h" | "7d" | "30d"): Promise<PlainObject>;
  account(): Promise<PlainObject>;
  readonly messages: Messages;
  readonly templates: Templates;
  readonly suppressions: Suppressions;
  readonly domains: Domains;
  readonly webhooks: Webhooks;
  readonly apiKeys: ApiKeys;
}

export type ErrorCode = Word<
  | "connection_failed"
  | "timed_out"
  | "unexpected_response"
  | "invalid_signature"
  | "invalid_request"
  | "unauthorized"
  | "insufficient_credits"
  | "account_suspended"
  | "forbidden"
  | "not_found"
  | "conflict"
  | "idempotency_conflict"
  | "idempotency_in_progress"
  | "payload_too_large"
  | "rate_limited"
  | "warmup_limited"
  | "internal_error"
  | "service_unavailable"
  | "temporary_failure"
>;

export interface ErrorDetails {
  code: ErrorCode;
  status?: number | null | undefined;
  requestId?: string | null | undefined;
  retryAfter?: number | null | undefined;
  idempotencyKey?: string | null | undefined;
  /** How many attempts were made; the message mentions it when there was more than one. */
  attempts?: number | undefined;
  cause?: unknown;
}

/** Everything that can go wrong with a request; it has a subclass for each kind. */
export class PostroadError extends Error {
  constructor(text: string, details: ErrorDetails);
  readonly code: ErrorCode;
  /** The HTTP status; null when there was no response. */
  readonly status: number | null;
  /** Give it to the operator: the log line of the request carries it. */
  readonly requestId: string | null;
  /** Seconds that the server asked to wait. */
  readonly retryAfter: number | null;
  /** The key of the send, with which it can be repeated later; null for `get` and `wait`. */
  readonly idempotencyKey: string | null;
  /** Whether the same call may succeed later. */
  readonly isRetryable: boolean;
  readonly isInsufficientCredits: boolean;
  /** Whether the key was used for a different email before. */
  readonly isIdempotencyConflict: boolean;
}

/** The request is not valid: 400, 413, and every other 4xx that has no class of its own. */
export class InvalidRequestError extends PostroadError {}
/** The credential is not valid: 401. */
export class AuthenticationError extends PostroadError {}
/** The account has fewer credits than the email has recipients: 402. */
export class InsufficientCreditsError extends PostroadError {}
/** The credential is valid and may not do this: 403. */
export class PermissionDeniedError extends PostroadError {}
/** There is no such message: 404. */
export class NotFoundError extends PostroadError {}
/** The key was used for a different email, or its first request is still in progress: 409. */
export class IdempotencyError extends PostroadError {}
/** Too much was sent; `retryAfter` may say when to go on: 429. */
export class RateLimitError extends PostroadError {}
/** The service, or a proxy before it, could not do it: 5xx. */
export class ServerError extends PostroadError {}
/** No connection was made, or it was lost before the response was complete. */
export class ConnectionFailedError extends PostroadError {}
/** There was no complete response in time, or the message of a `wait` was not final in time. */
export class TimedOutError extends PostroadError {
  constructor(text: string, details: ErrorDetails & { lastMessage?: Message | null | undefined });
  /** What `wait` saw last; null for the other calls. */
  readonly lastMessage: Message | null;
}
/** What came is not what Postroad sends, or no HTTP at all. */
export class UnexpectedResponseError extends PostroadError {}
/** A webhook was not signed with the secret, or not just now. */
export class SignatureVerificationError extends PostroadError {}

export type EventType = Word<
  | "email.delivered"
  | "email.bounced"
  | "email.failed"
  | "email.accepted"
  | "email.deferred"
  | "email.complained"
  | "email.bounced_later"
  | "email.suppressed"
  | "email.expired"
  | "email.canceled"
  | "domain.verified"
  | "domain.failing"
  | "account.warned"
  | "account.suspended"
  | "credits.low"
  | "webhook.test"
>;

/** A webhook. It may come twice, with the same `id`. */
export interface Event {
  readonly id: string;
  readonly type: EventType;
  /** When the result became final, not when the request was sent. */
  readonly createdAt: Date | null;
  readonly data: EventData;
}

/** The recipient of an event. What the server left out is null. */
export interface EventData {
  readonly emailId: string | null;
  readonly recipientId: string | null;
  readonly to: string | null;
  /** The sender of the envelope, to which bounces go. */
  readonly from: string | null;
  readonly subject: string | null;
  readonly smtpCode: number | null;
  readonly smtpResponse: string | null;
  /** Whether it is a ping. */
  readonly test: boolean;
}

/**
 * Gives the event of a webhook that was signed with the secret, at most `tolerance` seconds from now. Rejects with a
 * `SignatureVerificationError` otherwise, and with a `TypeError` when what was signed is no event.
 * @param rawBody The body as it came, before anything parsed it.
 * @param header The value of `Service-Signature`.
 * @param secret The secret, or several of which one has to match.
 * @param now Seconds since 1970, in the place of the clock.
 */
export function parseEvent(
  rawBody: Uint8Array | string,
  header: string | readonly string[] | null | undefined,
  secret: string | readonly string[],
  tolerance?: number,
  now?: number,
): Promise<Event>;
