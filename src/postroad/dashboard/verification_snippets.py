"""Code that verifies the signature of an event. Tests compare it with docs/webhooks.md."""

from typing import Final

from postroad.dashboard import snippets

SNIPPETS: Final = (
    snippets.Snippet(
        "Python",
        "Flask, FastAPI, Django: pass the raw body, before anything parses it.",
        """\
import hashlib, hmac, re, time

def is_genuine(body: bytes, header: str | None, secret: str, now: int | None = None) -> bool:
    parts = [part.partition("=") for part in (header or "").split(",")]
    times = [value for name, _, value in parts if name == "t"]
    given = [value for name, _, value in parts if name == "v1" and re.fullmatch("[0-9a-f]{64}", value)]
    if not secret or len(times) != 1 or not re.fullmatch("[0-9]{1,15}", times[0]):
        return False
    if abs((int(time.time()) if now is None else now) - int(times[0])) > 300:
        return False
    expected = hmac.new(secret.encode(), times[0].encode() + b"." + body, hashlib.sha256).hexdigest()
    return any(hmac.compare_digest(expected, value) for value in given)""",
    ),
    snippets.Snippet(
        "Node.js",
        "Express: use express.raw() for the route, to keep the raw bytes.",
        """\
import crypto from "node:crypto";

export function isGenuine(body, header, secret, now = Math.floor(Date.now() / 1000)) {
  const times = [], given = [];
  for (const part of (header ?? "").split(",")) {
    const [name, ...rest] = part.split("=");
    if (name === "t") times.push(rest.join("="));
    if (name === "v1") given.push(rest.join("="));
  }
  if (!secret || times.length !== 1 || !/^[0-9]{1,15}$/.test(times[0])) return false;
  if (Math.abs(now - Number(times[0])) > 300) return false;
  const expected = crypto.createHmac("sha256", secret).update(`${times[0]}.`).update(body).digest();
  return given.some((value) =>
    /^[0-9a-f]{64}$/.test(value) && crypto.timingSafeEqual(expected, Buffer.from(value, "hex")));
}""",
    ),
    snippets.Snippet(
        "PHP",
        "Laravel: pass $request->getContent(), and exclude the route from the CSRF check.",
        """\
function is_genuine(string $body, ?string $header, string $secret, ?int $now = null): bool
{
    $sent = ['t' => [], 'v1' => []];
    foreach (explode(',', $header ?? '') as $part) {
        [$name, $value] = explode('=', $part, 2) + [1 => ''];
        $sent[$name][] = $value;
    }
    if ($secret === '' || count($sent['t']) !== 1 || !preg_match('/\\A[0-9]{1,15}\\z/', $sent['t'][0])) {
        return false;
    }
    if (abs(($now ?? time()) - (int) $sent['t'][0]) > 300) {
        return false;
    }
    $expected = hash_hmac('sha256', $sent['t'][0] . '.' . $body, $secret);
    foreach ($sent['v1'] as $value) {
        if (hash_equals($expected, $value)) {
            return true;
        }
    }
    return false;
}""",
    ),
)
