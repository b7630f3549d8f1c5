// Checks of what an application hands over. All of them throw a TypeError that never quotes a secret.

/** Refuses members that nobody knows: a mistyped one must not get lost. */
function onlyKnown(object, known, what) {
  if (typeof object !== "object" || object === null) throw new TypeError(`${what} must be an object`);
  for (const name of Object.keys(object)) {
    if (!known.includes(name)) throw new TypeError(`${what}: there is no "${name}"; known are ${known.join(", ")}`);
  }
}

function string(value, what) {
  if (typeof value !== "string") throw new TypeError(`${what} must be a string`);
  return value;
}

/** A string that can be the value of a header: not empty, no line break, no other control character, nothing beyond ASCII. */
function headerValue(value, what) {
  if (!/^[\x20-\x7e]+$/.test(string(value, what))) throw new TypeError(`${what} must be printable ASCII, and not empty`);
  return value;
}

/** An id that can stand in a path without leading to another one. */
function messageId(value) {
  if (!/^[A-Za-z0-9_-]+$/.test(string(value, "id"))) throw new TypeError("id must be of letters, digits, _ and -");
  return value;
}

export { headerValue, messageId, onlyKnown, string };
