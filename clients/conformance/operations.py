"""The table of operations that every library has beside sending and reading: made of the OpenAPI document.

`python -m tests.clients.write_operations` writes clients/operations.json, and a test holds the file to the document.
Each operation is also a scenario: one call, the request that it has to make, and what it has to give back.
"""

import json
from pathlib import Path
from typing import Any, Final
from urllib import parse

TABLE: Final = Path(__file__).parent.parent / "operations.json"
# The method of each operation, in the words of Python; other languages follow their own conventions.
METHODS: Final = {
    "listMessages": "messages.list",
    "getMessage": "messages.get",
    "retryMessage": "messages.retry",
    "listTemplates": "templates.list",
    "getTemplate": "templates.get",
    "saveTemplate": "templates.save",
    "deleteTemplate": "templates.delete",
    "previewTemplate": "templates.preview",
    "listSuppressions": "suppressions.list",
    "createSuppression": "suppressions.create",
    "getSuppression": "suppressions.get",
    "deleteSuppression": "suppressions.delete",
    "listDomains": "domains.list",
    "createDomain": "domains.create",
    "getDomain": "domains.get",
    "deleteDomain": "domains.delete",
    "checkDomain": "domains.check",
    "rotateDomainKey": "domains.rotate_key",
    "listWebhooks": "webhooks.list",
    "createWebhook": "webhooks.create",
    "getWebhook": "webhooks.get",
    "updateWebhook": "webhooks.update",
    "deleteWebhook": "webhooks.delete",
    "rotateWebhookSecret": "webhooks.rotate_secret",
    "pingWebhook": "webhooks.ping",
    "listWebhookDeliveries": "webhooks.deliveries",
    "getWebhookDelivery": "webhooks.get_delivery",
    "replayWebhookDelivery": "webhooks.replay",
    "replayWebhookDeliveries": "webhooks.replay_failed",
    "listApiKeys": "api_keys.list",
    "createApiKey": "api_keys.create",
    "updateApiKey": "api_keys.update",
    "revokeApiKey": "api_keys.revoke",
    "getStatistics": "statistics",
    "getAccount": "account",
}
# A POST that does no harm when it is made twice.
REPEATABLE: Final = ("checkDomain", "previewTemplate")
ARGUMENTS: Final = {"alias": "welcome", "email": "a+b/c@example.net", "id": "id_1", "webhook": "whk_1"}
NEXT_PAGES: Final = {"next_cursor": "cursor", "next_before": "before"}


def table(document: dict[str, Any]) -> list[dict[str, Any]]:
    """The operations, in the order of the document."""
    return [
        _entry(document, method.upper(), path, operation)
        for path, item in document["paths"].items()
        for method, operation in item.items()
        if operation["operationId"] in METHODS
    ]


def load() -> list[dict[str, Any]]:
    """The table as it is committed."""
    entries: list[dict[str, Any]] = json.loads(TABLE.read_text(encoding="utf-8"))
    return entries


def text(document: dict[str, Any]) -> str:
    """The file."""
    lines = ",\n".join(f"  {json.dumps(entry, ensure_ascii=False)}" for entry in table(document))
    return f"[\n{lines}\n]\n"


def _entry(document: dict[str, Any], method: str, path: str, operation: dict[str, Any]) -> dict[str, Any]:
    schemas = document["components"]["schemas"]
    response = next(iter(operation["responses"].values())).get("content")
    members = _properties(schemas, response) - {"request_id"} if response else set()
    pages = sorted(members & NEXT_PAGES.keys())
    is_list = bool(pages) or operation["operationId"] == "listWebhooks"
    if is_list:  # what a caller has to ask for is beside the items
        members &= {*_schema(schemas, response)["required"]}
    (member,) = members - {*pages} if len(members - {*pages}) == 1 else (None,)
    body = operation.get("requestBody")
    return {
        "id": operation["operationId"],
        "name": METHODS[operation["operationId"]],
        "method": method,
        "path": path,
        "arguments": [each["name"] for each in operation["parameters"] if each["in"] == "path"],
        "query": [each["name"] for each in operation["parameters"] if each["in"] == "query"],
        "body": sorted(_properties(schemas, body["content"])) if body else None,
        "result": "items" if is_list else "nothing" if response is None else "object",
        "member": member,
        "next": pages[0] if pages else None,
        "repeatable": method != "POST" or operation["operationId"] in REPEATABLE,
        "example": _example(schemas, body),
    }


def _schema(schemas: dict[str, Any], content: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = schemas[next(iter(content.values()))["schema"]["$ref"].rpartition("/")[2]]
    return found


def _properties(schemas: dict[str, Any], content: dict[str, Any]) -> set[str]:
    return set(_schema(schemas, content)["properties"])


def _example(schemas: dict[str, Any], body: dict[str, Any] | None) -> dict[str, Any]:
    if body is None:
        return {}
    example: dict[str, Any] = _schema(schemas, body["content"])["examples"][0]
    return example


def scenarios() -> list[dict[str, Any]]:
    """A scenario for each operation, in the form of scenarios.json."""
    return [_scenario(entry) for entry in load()]


def _scenario(entry: dict[str, Any]) -> dict[str, Any]:
    given = [ARGUMENTS[name] for name in entry["arguments"]]
    path = entry["path"]
    for name in entry["arguments"]:
        path = path.replace(f"{{{name}}}", parse.quote(ARGUMENTS[name], safe=""))
    parameters = {"limit": 2} if "limit" in entry["query"] else entry["example"]
    request = {"method": entry["method"], "body": entry["example"] if entry["body"] is not None else None}
    answers, result, paths = _pages(entry, path) if entry["result"] == "items" else (*_single(entry), [path])
    return {
        "name": f"{entry['name']} is {entry['id']}",
        "call": {"operation": "call", "name": entry["name"], "arguments": given, "parameters": parameters},
        "server": answers,
        "expect": {"result": result, "requests": len(paths), "paths": paths, "request": request},
    }


def _single(entry: dict[str, Any]) -> tuple[list[dict[str, Any]], object]:
    if entry["result"] == "nothing":
        return [{"status": 204, "text": ""}], None
    plain = {"id": "x_1", "new_member": [1, None, {"deep": True}]}
    # Typed languages hold it to be text.
    value = "whsec_1" if entry["member"] == "secret" else plain
    whole = {entry["member"]: value, "request_id": "req_1"} if entry["member"] else {**plain, "request_id": "req_1"}
    return [{"status": 200, "json": whole}], value if entry["member"] else whole


def _pages(entry: dict[str, Any], path: str) -> tuple[list[dict[str, Any]], object, list[str]]:
    items = [{"id": "x_1"}, {"id": "x_2", "name": None}]
    if entry["next"] is None:
        return [{"status": 200, "json": {entry["member"]: items}}], items, [path]
    pages = [
        {entry["member"]: [item], entry["next"]: following}
        for item, following in zip(items, ("a b&c", None), strict=True)
    ]
    more = f"{path}?limit=2&{NEXT_PAGES[entry['next']]}=a%20b%26c"
    return [{"status": 200, "json": page} for page in pages], items, [f"{path}?limit=2", more]
