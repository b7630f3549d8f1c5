"use strict";
// What the package offers, for `require`.

const { Attachment } = require("./lib/attachment.js");
const { Postroad } = require("./lib/client.js");
const { PostroadError } = require("./lib/error.js");
const { verify } = require("./lib/webhook.js");

module.exports = { Attachment, Postroad, PostroadError, verify };
