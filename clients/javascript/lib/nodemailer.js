// A transport for Nodemailer, which has parsed addresses and read files before it comes here.

import { Attachment } from "./attachment.js";
import { VERSION } from "./version.js";

// Members of a mail that Nodemailer passes on, and Postroad knows.
const MORE = ["template", "variables", "tags", "metadata", "sendAt", "expiresIn"];

/** `nodemailer.createTransport(nodemailerTransport(client))` sends through Postroad. */
function nodemailerTransport(client) {
  return {
    name: "postroad",
    version: VERSION,
    send(mail, callback) {
      mail.normalize((error, data) => {
        if (error) callback(error);
        else send(client, data).then((info) => callback(null, info), callback);
      });
    },
    verify(callback) {
      const verified = verify(client);
      if (!callback) return verified;
      verified.then((answer) => callback(null, answer), callback);
    },
  };
}

/** Sends an email without members: the server refuses it as such only when it would take another with this key. */
async function verify(client) {
  try {
    await client.send({});
  } catch (error) {
    if (error.code !== "invalid_request") throw error;
  }
  return true;
}

async function send(client, data) {
  const replyTo = addresses(data.replyTo);
  if (data.alternatives?.length || data.icalEvent || data.raw) {
    throw new TypeError("Postroad sends text, html and attachments; alternatives, icalEvent and raw are not supported");
  }
  const email = {
    from: addresses(data.from)[0],
    to: addresses(data.to),
    cc: list(addresses(data.cc)),
    bcc: list(addresses(data.bcc)),
    replyTo: replyTo.length > 1 ? replyTo : replyTo[0],
    subject: data.subject,
    text: data.text,
    html: data.html,
    headers: Object.keys(data.normalizedHeaders ?? {}).length ? data.normalizedHeaders : undefined,
    attachments: list((data.attachments ?? []).map(toAttachment)),
    ...Object.fromEntries(MORE.map((name) => [name, data[name]])),
  };
  const receipt = await client.send(email, { idempotencyKey: data.idempotencyKey });
  const accepted = [...receipt.to, ...receipt.cc, ...receipt.bcc];
  return { messageId: receipt.id, envelope: data.envelope, accepted, rejected: [], response: receipt.status, receipt };
}

function addresses(given) {
  return [given ?? []].flat().map((each) => {
    if (typeof each === "string" || !each.name) return each.address ?? each;
    return `"${each.name.replace(/["\\]/g, "\\$&")}" <${each.address}>`;
  });
}

function list(items) {
  return items.length ? items : undefined;
}

function toAttachment({ filename, content = "", encoding = "utf8", contentType, cid }) {
  const bytes = typeof content === "string" ? Buffer.from(content, encoding) : content;
  return new Attachment({ filename: filename || cid || "attachment", content: bytes, contentType, contentId: cid });
}

export { nodemailerTransport };
