// What the package offers, in every runtime that has `fetch` and Web Crypto. `postroad/node` has what needs Node.js.

export { Attachment } from "./lib/attachment.js";
export { Postroad } from "./lib/client.js";
export {
  AuthenticationError,
  ConnectionFailedError,
  IdempotencyError,
  InsufficientCreditsError,
  InvalidRequestError,
  NotFoundError,
  PermissionDeniedError,
  PostroadError,
  RateLimitError,
  ServerError,
  SignatureVerificationError,
  TimedOutError,
  UnexpectedResponseError,
} from "./lib/error.js";
export { parseEvent } from "./lib/webhook.js";
