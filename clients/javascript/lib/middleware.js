// A middleware for Express and its like: (request, response, next).

import { SignatureVerificationError } from "./error.js";
import { parseEvent } from "./webhook.js";

// An event has a few KiB.
const MOST_BYTES = 1024 * 1024;

/**
 * Verifies a webhook and puts its event into `request.event`. A bad signature is answered with 400.
 * The body must be as it came: put this before anything that parses it, or after `express.raw`.
 */
function webhookMiddleware(secret) {
  return async (request, response, next) => {
    try {
      const body = Buffer.isBuffer(request.body) ? request.body : await readAll(request);
      request.event = await parseEvent(body, request.headers["service-signature"], secret);
    } catch (error) {
      if (!(error instanceof SignatureVerificationError || error instanceof TypeError)) return next(error);
      response.statusCode = 400;
      return response.end("the webhook could not be verified");
    }
    return next();
  };
}

async function readAll(request) {
  const chunks = [];
  let size = 0;
  for await (const chunk of request) {
    size += chunk.length;
    if (size > MOST_BYTES) throw new TypeError("the body is larger than an event can be");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

export { webhookMiddleware };
