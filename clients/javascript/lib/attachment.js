// A file that goes with an email.

import { onlyKnown, string } from "./arguments.js";
import { isBytes } from "./signature.js";

const KNOWN = ["filename", "content", "contentType", "contentId"];

export class Attachment {
  constructor(members) {
    onlyKnown(members, KNOWN, "attachment");
    this.filename = string(members.filename, "an attachment's filename");
    if (!isBytes(members.content)) {
      throw new TypeError("an attachment's content must be a Buffer or another Uint8Array");
    }
    this.content = members.content;
    this.contentType = members.contentType ?? null;
    this.contentId = members.contentId ?? null;
  }
}
