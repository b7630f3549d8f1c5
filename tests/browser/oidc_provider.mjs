/* A real OpenID Connect provider on loopback: node-oidc-provider, with its pages for developers, where any password is right.
 *
 * Reads one line of JSON: the port (0: any), and the clients. Writes the port when it listens. Whoever logs in has the
 * login name as email. It has new keys each time it starts. It ends with its standard input.
 */

import { generateKeyPairSync } from "node:crypto";
import { createServer } from "node:http";
import { once } from "node:events";
import { createInterface } from "node:readline";

import Provider from "oidc-provider";

const [line] = await once(createInterface({ input: process.stdin }), "line");
const { port, clients } = JSON.parse(line);

const server = createServer();
await once(server.listen(port, "127.0.0.1"), "listening");
const issuer = `http://127.0.0.1:${server.address().port}`;

const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
const key = { ...privateKey.export({ format: "jwk" }), kid: `key-${process.pid}`, alg: "RS256", use: "sig" };

const provider = new Provider(issuer, {
  clients,
  jwks: { keys: [key] },
  cookies: { keys: ["of the tests"] },
  claims: { openid: ["sub"], email: ["email", "email_verified", "groups"] },
  conformIdTokenClaims: false,
  pkce: { required: () => true },
  features: { devInteractions: { enabled: true }, rpInitiatedLogout: { enabled: true } },
  findAccount: (_, id) => ({
    accountId: id,
    claims: () => ({ sub: id, email: id, email_verified: true, groups: [id.split("@")[0]] }),
  }),
});
server.on("request", provider.callback());
process.stdin.on("end", () => process.exit(0));
process.stdout.write(`${server.address().port}\n`);
