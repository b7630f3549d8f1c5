"use strict";
// A file that goes with an email.

const { readFile } = require("node:fs/promises");
const { basename } = require("node:path");
const { fileURLToPath } = require("node:url");
const { isUint8Array } = require("node:util/types");
const { onlyKnown, string } = require("./arguments.js");

const KNOWN = ["filename", "content", "contentType", "contentId"];

class Attachment {
  constructor(members) {
    onlyKnown(members, KNOWN, "attachment");
    this.filename = string(members.filename, "an attachment's filename");
    if (!isUint8Array(members.content)) {
      throw new TypeError("an attachment's content must be a Buffer or another Uint8Array");
    }
    this.content = members.content;
    this.contentType = members.contentType ?? null;
    this.contentId = members.contentId ?? null;
  }

  static async fromFile(path, members = {}) {
    onlyKnown(members, ["filename", "contentType", "contentId"], "attachment");
    const filename = members.filename ?? basename(path instanceof URL ? fileURLToPath(path) : path);
    return new Attachment({ ...members, filename, content: await readFile(path) });
  }
}

module.exports = { Attachment };
