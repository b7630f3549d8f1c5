// From an email as an application writes it to the body of a request.

import { toBase64 } from "#platform";
import { onlyKnown } from "./arguments.js";
import { Attachment } from "./attachment.js";

const NAMES = {
  from: "from",
  to: "to",
  cc: "cc",
  bcc: "bcc",
  replyTo: "reply_to",
  subject: "subject",
  text: "text",
  html: "html",
  template: "template",
  variables: "variables",
  headers: "headers",
  tags: "tags",
  attachments: "attachments",
  sendAt: "send_at",
  expiresIn: "expires_in",
  metadata: "metadata",
  unsubscribe: "unsubscribe",
};

function emailToJson(email) {
  return JSON.stringify(emailMembers(email));
}

function emailMembers(email) {
  onlyKnown(email, Object.keys(NAMES), "email");
  const body = {};
  for (const [name, sent] of Object.entries(NAMES)) {
    const value = email[name] ?? undefined; // JSON leaves undefined out.
    body[sent] = name === "attachments" ? value && attachmentsToJson(value) : value;
  }
  return body;
}

function attachmentsToJson(attachments) {
  if (!Array.isArray(attachments)) throw new TypeError("attachments must be an array");
  return attachments.map((given) => {
    const { filename, content, contentType, contentId } = given instanceof Attachment ? given : new Attachment(given);
    return {
      filename,
      content: toBase64(content),
      content_type: contentType ?? undefined,
      content_id: contentId ?? undefined,
    };
  });
}

export { emailMembers, emailToJson };
