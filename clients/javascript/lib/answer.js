// What a response means: the object that was asked for, or what went wrong.

import { Mismatch } from "./members.js";
import { readRetryAfter } from "./retry-after.js";

/** Gives `{ value }`, as `read` makes it of a good response's JSON, or `{ failure }`. */
function readAnswer(answer, read, { hasContent = true } = {}) {
  const { status, headers } = answer;
  const body = parse(answer);
  const facts = {
    status,
    requestId: typeof body?.request_id === "string" ? body.request_id : headers.get("x-request-id"),
    retryAfter: readRetryAfter(headers.get("retry-after")),
  };
  const unexpected = (text) => ({ failure: { ...facts, code: "unexpected_response", text } });

  if (status === 204 && !hasContent) return { value: null };
  if (answer.redirected) return unexpected("the given fetch followed a redirect, and must not");
  if (answer.isTooLarge) return unexpected("the response is larger than 4 MiB");
  if (status >= 300 && status < 400) {
    const target = quote(headers.get("location") ?? "");
    return unexpected(`a redirect${target && ` to ${target}`}; redirects are not followed`);
  }
  if (status >= 400 && typeof body?.code === "string" && body.code !== "") {
    const text = typeof body.error === "string" ? body.error : "the server gives no reason";
    return { failure: { ...facts, code: body.code, text } };
  }
  if (status < 200 || status >= 300 || body === undefined) {
    return unexpected(`not a response of Postroad: ${quote(answer.text) || "it is empty"}`);
  }
  try {
    return { value: read(body) };
  } catch (error) {
    if (error instanceof Mismatch) return unexpected(`not a response of Postroad: ${error.message}`);
    throw error;
  }
}

/** The JSON of a response; undefined when it is none. */
function parse({ text, isTooLarge }) {
  try {
    return isTooLarge ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** At most 200 characters of what a stranger wrote, on one line. */
function quote(text) {
  const line = text.replace(/[\s\p{Cc}]+/gu, " ").trim();
  return /^.{0,200}/su.exec(line)[0];
}

export { readAnswer };
