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
}
