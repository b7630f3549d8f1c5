// Receipts, messages and events: the names that applications see, and those that the server uses.

import { Mismatch, boolean, integer, list, object, plain, record, required, string, stringOrStrings, strings, stringsByName, time } from "./members.js";

const readReceipt = record({
  id: required("id"),
  status: string("status"),
  source: string("source"),
  from: string("from"),
  to: strings("to"),
  cc: strings("cc"),
  bcc: strings("bcc"),
  replyTo: stringOrStrings("reply_to"),
  subject: string("subject"),
  billingStatus: string("billing_status"),
  recipientCount: integer("recipient_count"),
  creditsReserved: integer("credits_reserved"),
  headers: stringsByName("headers"),
  tags: strings("tags"),
  attachments: list("attachments", {
    filename: string("filename"),
    contentType: string("content_type"),
    size: integer("size"),
    contentId: string("content_id"),
  }),
  requestId: string("request_id"),
  sendAt: time("send_at"),
  expiresAt: time("expires_at"),
  metadata: stringsByName("metadata"),
});

const readMessage = record({
  id: required("id"),
  status: required("status"),
  source: string("source"),
  from: string("from"),
  subject: string("subject"),
  billingStatus: string("billing_status"),
  recipientCount: integer("recipient_count"),
  creditsReserved: integer("credits_reserved"),
  createdAt: time("created_at"),
  recipients: list("recipients", {
    id: string("id"),
    email: string("email"),
    status: string("status"),
    billingStatus: string("billing_status"),
    attemptCount: integer("attempt_count"),
    lastSmtpCode: integer("last_smtp_code"),
    lastSmtpResponse: string("last_smtp_response"),
    deliveredAt: time("delivered_at"),
    bouncedAt: time("bounced_at"),
    queue: plain("queue"),
  }),
  requestId: string("request_id"),
  sendAt: time("send_at"),
  expiresAt: time("expires_at"),
  metadata: stringsByName("metadata"),
});

const readEvent = record({
  id: required("id"),
  type: required("type"),
  createdAt: time("created_at"),
  data: object("data", {
    emailId: string("email_id"),
    recipientId: string("recipient_id"),
    to: string("to"),
    from: string("from"),
    subject: string("subject"),
    smtpCode: integer("smtp_code"),
    smtpResponse: string("smtp_response"),
    test: boolean("test"),
  }),
});

/** A reader that leaves the names of the API as they are; of one member, or of everything. */
function plainReader(member) {
  return (object) => {
    if (typeof object !== "object" || object === null || Array.isArray(object)) throw new Mismatch("it is not an object");
    if (member !== undefined && !(member in object)) throw new Mismatch(`there is no \`${member}\``);
    return member === undefined ? object : object[member];
  };
}

export { plainReader, readEvent, readMessage, readReceipt };
