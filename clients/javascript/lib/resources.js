// The rest of the API: each operation is a line of a table. Arguments and results have the names of the API.

/** A POST may do something twice, so it is repeated only where that does no harm. */
const RESOURCES = {
  messages: {
    list: ["GET", "/v1/messages", { items: "messages" }],
    get: ["GET", "/v1/messages/{}"],
    retry: ["POST", "/v1/messages/{}/retry", { hasBody: true }],
  },
  templates: {
    list: ["GET", "/v1/templates", { items: "templates" }],
    get: ["GET", "/v1/templates/{}", { member: "template" }],
    save: ["PUT", "/v1/templates/{}", { hasBody: true, member: "template" }],
    delete: ["DELETE", "/v1/templates/{}"],
    preview: ["POST", "/v1/templates/{}/preview", { hasBody: true, isRepeatable: true }],
  },
  suppressions: {
    list: ["GET", "/v1/suppressions", { items: "suppressions" }],
    create: ["POST", "/v1/suppressions", { hasBody: true, member: "suppression" }],
    get: ["GET", "/v1/suppressions/{}", { member: "suppression" }],
    delete: ["DELETE", "/v1/suppressions/{}"],
  },
  domains: {
    list: ["GET", "/v1/domains", { items: "domains" }],
    create: ["POST", "/v1/domains", { hasBody: true, member: "domain" }],
    get: ["GET", "/v1/domains/{}", { member: "domain" }],
    delete: ["DELETE", "/v1/domains/{}"],
    check: ["POST", "/v1/domains/{}/check", { member: "domain", isRepeatable: true }],
    rotateKey: ["POST", "/v1/domains/{}/rotate-key", { member: "domain" }],
  },
  webhooks: {
    list: ["GET", "/v1/webhooks", { items: "webhooks" }],
    create: ["POST", "/v1/webhooks", { hasBody: true }],
    get: ["GET", "/v1/webhooks/{}", { member: "webhook" }],
    update: ["PATCH", "/v1/webhooks/{}", { hasBody: true, member: "webhook" }],
    delete: ["DELETE", "/v1/webhooks/{}"],
    rotateSecret: ["POST", "/v1/webhooks/{}/rotate-secret", { hasBody: true, member: "secret" }],
    ping: ["POST", "/v1/webhooks/{}/ping", { member: "delivery" }],
    deliveries: ["GET", "/v1/webhooks/{}/deliveries", { items: "deliveries" }],
    getDelivery: ["GET", "/v1/webhooks/{}/deliveries/{}", { member: "delivery" }],
    replay: ["POST", "/v1/webhooks/{}/deliveries/{}/replay", { member: "delivery" }],
    replayFailed: ["POST", "/v1/webhooks/{}/deliveries/replay", { hasBody: true }],
  },
  apiKeys: {
    list: ["GET", "/v1/api-keys", { items: "api_keys" }],
    create: ["POST", "/v1/api-keys", { hasBody: true }],
    update: ["PATCH", "/v1/api-keys/{}", { hasBody: true, member: "api_key" }],
    revoke: ["DELETE", "/v1/api-keys/{}"],
  },
};

const NEXT_PAGES = { next_cursor: "cursor", next_before: "before" };

/** The resources, each an object of functions. `call(method, path, details)` makes a request. */
function makeResources(call) {
  const made = Object.entries(RESOURCES).map(([name, operations]) => {
    const functions = Object.entries(operations).map(([verb, operation]) => [verb, makeFunction(call, ...operation)]);
    return [name, Object.freeze(Object.fromEntries(functions))];
  });
  return Object.fromEntries(made);
}

/** The names of the path come first, then the parameters: the body, or the filters of a list. */
function makeFunction(call, method, path, { items, hasBody = false, member, isRepeatable = method !== "POST" } = {}) {
  const count = path.split("{}").length - 1;
  return (...given) => {
    const filled = fill(path, given.slice(0, count));
    const parameters = given[count] ?? {};
    if (items) return pages(call, filled, items, parameters);
    return call(method, filled, { body: hasBody ? parameters : undefined, member, isRepeatable });
  };
}

async function* pages(call, path, items, filters) {
  for (let following = {}; following; ) {
    const page = await call("GET", path + query({ ...filters, ...following }), { isRepeatable: true });
    yield* page[items] ?? [];
    const next = Object.keys(NEXT_PAGES).find((name) => page[name] != null);
    following = next && { [NEXT_PAGES[next]]: page[next] };
  }
}

/** "." and ".." are another path to whoever normalizes it, and so to `fetch`. */
function fill(path, names) {
  let used = 0;
  return path.replace(/\{\}/g, () => {
    const name = names[used++];
    if (typeof name !== "string" || ["", ".", ".."].includes(name)) {
      throw new TypeError('a name in a path is a string, not empty, and not "." or ".."');
    }
    return encodeURIComponent(name);
  });
}

function query(parameters) {
  const given = Object.entries(parameters).filter(([, value]) => value != null);
  const written = given.map(([name, value]) => {
    return `${name}=${encodeURIComponent(value instanceof Date ? value.toISOString() : value)}`;
  });
  return written.length ? `?${written.join("&")}` : "";
}

export { makeResources, query };
