// The types of `postroad/node`.

import { Attachment, AttachmentMembers, Event, Postroad } from "./index.cjs";

/** Reads a file now. Its name is the last part of the path unless you give another. */
export function attachmentFromFile(
  path: string | URL,
  members?: Partial<Omit<AttachmentMembers, "content">>,
): Promise<Attachment>;

/**
 * Whether a webhook was signed with the secret, at most `tolerance` seconds from now.
 * @param rawBody The body as it came, before anything parsed it.
 * @param header The value of `Service-Signature`.
 * @param now Seconds since 1970, in the place of the clock.
 */
export function verify(
  rawBody: Uint8Array | string,
  header: string | readonly string[] | null | undefined,
  secret: string,
  tolerance?: number,
  now?: number,
): boolean;

/**
 * A transport for Nodemailer: `nodemailer.createTransport(nodemailerTransport(client))`.
 * A mail may also have `template`, `variables`, `tags`, `metadata`, `sendAt`, `expiresIn` and `idempotencyKey`.
 */
export function nodemailerTransport(client: Pick<Postroad, "send">): {
  name: string;
  version: string;
  send(mail: any, callback: (error: Error | null, info?: any) => void): void;
  /** Asks the server whether it would accept mail with the client's key; sends nothing. */
  verify(): Promise<true>;
  verify(callback: (error: Error | null, answer?: true) => void): void;
};

/**
 * A middleware of Express and its like, which verifies a webhook and puts its event into `request.event`.
 * A bad signature is answered with 400. Put it before anything that parses the body, or after `express.raw`.
 */
export function webhookMiddleware(
  secret: string | readonly string[],
): (request: any, response: any, next: (error?: unknown) => void) => Promise<void>;

/** The type of `request.event`. */
export type WebhookEvent = Event;
