// The types of `postroad/node`.

import { Attachment, AttachmentMembers } from "./index.cjs";

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
