"""The driver of the conformance suite: `driver.py sync` and `driver.py async` do the same with the two clients."""

from __future__ import annotations

import asyncio
import base64
import dataclasses
import json
import operator
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from datetime import datetime
from typing import Any

import postroad_client
from postroad_client import AsyncClient, Attachment, Client, Email, PostroadError, parse_event, verify

ERROR_MEMBERS = (
    "status code request_id message retry_after idempotency_key is_retryable is_insufficient_credits"
    " is_idempotency_conflict"
).split()

KINDS = {
    postroad_client.AuthenticationError: "authentication",
    postroad_client.ConnectionFailedError: "connection_failed",
    postroad_client.IdempotencyError: "idempotency",
    postroad_client.InsufficientCreditsError: "insufficient_credits",
    postroad_client.InvalidRequestError: "invalid_request",
    postroad_client.NotFoundError: "not_found",
    postroad_client.PermissionDeniedError: "permission_denied",
    postroad_client.RateLimitError: "rate_limited",
    postroad_client.ServerError: "server",
    postroad_client.SignatureVerificationError: "signature",
    postroad_client.TimedOutError: "timed_out",
    postroad_client.UnexpectedResponseError: "unexpected_response",
}


def attachment(given: dict[str, Any]) -> Attachment:
    if "path" in given:
        return Attachment.from_file(given.pop("path"), **given)
    return Attachment(content=base64.b64decode(given.pop("bytes_base64")), **given)


def email(given: dict[str, Any]) -> Email:
    if "attachments" in given:
        given["attachments"] = [attachment(each) for each in given["attachments"]]
    return Email(sender=given.pop("from"), **given)


def written(value: object) -> object:
    """A result, or a part of one, with the names of the interface."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, tuple):
        return [written(each) for each in value]
    if dataclasses.is_dataclass(value):
        members = {field.name: written(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return {"from" if name == "sender" else name: member for name, member in members.items()}
    return value


def called(client: object, line: dict[str, Any]) -> Any:  # noqa: ANN401 - any result
    arguments = line["arguments"]
    if line["name"] == "send_batch":
        arguments = [[email(each) for each in line["arguments"][0]]]
    return operator.attrgetter(line["name"])(client)(*arguments, **line["parameters"])


def answered(line: dict[str, Any]) -> object:
    with Client(**line["client"]) as client:
        if line["operation"] == "call":
            result = called(client, line)
            return list(result) if isinstance(result, Iterator) else result
        if line["operation"] == "send":
            return client.send(email(line["email"]), idempotency_key=line.get("idempotency_key"))
        if line["operation"] == "wait":
            return client.wait(line["id"], line["timeout"])
        return client.get(line["id"])


async def answered_async(line: dict[str, Any]) -> object:
    async with AsyncClient(**line["client"]) as client:
        if line["operation"] == "call":
            result = called(client, line)
            return [item async for item in result] if isinstance(result, AsyncIterator) else await result
        if line["operation"] == "send":
            return await client.send(email(line["email"]), idempotency_key=line.get("idempotency_key"))
        if line["operation"] == "wait":
            return await client.wait(line["id"], line["timeout"])
        return await client.get(line["id"])


def verified(line: dict[str, Any]) -> bool:
    body = base64.b64decode(line["body_base64"])
    return verify(body, line["header"], line["secret"], line["tolerance"], line["now"])


def parsed(line: dict[str, Any]) -> object:
    body = base64.b64decode(line["body_base64"])
    return written(parse_event(body, line["header"], line["secrets"], line["tolerance"], line["now"]))


def answer(line: dict[str, Any], mode: str) -> Mapping[str, object]:
    try:
        if line["operation"] == "verify":
            return {"result": verified(line)}
        if line["operation"] == "parse_event":
            return {"result": parsed(line)}
        return {"result": written(answered(line) if mode == "sync" else asyncio.run(answered_async(line)))}
    except PostroadError as error:
        return {"error": {"kind": KINDS[type(error)], **{name: getattr(error, name) for name in ERROR_MEMBERS}}}
    except ValueError as error:
        return {"refused": str(error)}


def main() -> None:
    (mode,) = sys.argv[1:]
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line), mode)), flush=True)


if __name__ == "__main__":
    main()
