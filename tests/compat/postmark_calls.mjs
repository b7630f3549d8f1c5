// Calls methods of the `postmark` package: reads {host, key, calls: {method: [arguments]}} from standard input, and
// writes the methods that the package has, and the result of each call.
import { readFileSync } from "node:fs";
import postmark from "postmark";

const { host, key, calls } = JSON.parse(readFileSync(0, "utf8"));
const options = { requestHost: host, useHttps: false };
const clients = {
  ServerClient: new postmark.ServerClient(key, options),
  AccountClient: new postmark.AccountClient(key, options),
};
const methods = Object.keys(clients).flatMap((name) =>
  Object.getOwnPropertyNames(postmark[name].prototype)
    .filter((method) => method !== "constructor")
    .map((method) => `${name}.${method}`));

// What a call without arguments of its own gets: an object that is its own id.
const anything = Object.create({ toString: () => "x" });

const results = {};
for (const [method, given] of Object.entries(calls)) {
  const [client, name] = method.split(".");
  try {
    // The last parameter is a callback.
    const args = given ?? Array(clients[client][name].length - 1).fill(anything);
    results[method] = { data: await clients[client][name](...args) };
  } catch (problem) {
    results[method] = { error: { name: problem.name, code: problem.code, message: problem.message } };
  }
}
console.log(JSON.stringify({ methods, results }));
