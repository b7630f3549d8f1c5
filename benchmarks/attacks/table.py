"""The attacks: for each its name, what the attacker does, and the requests that it sends."""

import base64
import json
import time
import typing

from benchmarks import message
from benchmarks.attacks import attacker, outside, scene

LARGE_BYTES = 6_900_000
DAY = 86_400
BATCH_MESSAGES, BATCH_RECIPIENTS = 100, 50


class Attack(typing.NamedTuple):
    """A row of the table."""

    name: str
    about: str
    streams: typing.Callable[[scene.Scene], list[attacker.Stream]]


def _flood(stage: scene.Scene) -> list[attacker.Stream]:
    body = message.as_json("ascii").replace(message.RECIPIENT_DOMAIN.encode(), outside.QUICK_DOMAIN.encode())
    request = _post(stage, "/emails", body, key=stage.attacker.key)
    return [attacker.Stream(port=stage.http, connections=32, requests=[request])]


def _batch_of_many_keys(stage: scene.Scene) -> list[attacker.Stream]:
    return [
        attacker.Stream(port=stage.http, connections=5, requests=[_batch(stage, key)])
        for key in stage.attacker.test_keys
    ]


def _batch_of_one_key(stage: scene.Scene) -> list[attacker.Stream]:
    return [attacker.Stream(port=stage.http, connections=8, requests=[_batch(stage, stage.attacker.test_keys[0])])]


def _templates(stage: scene.Scene) -> list[attacker.Stream]:
    values = {"rows": [{"n": 1}] * 300, "cells": [{"value": "x"}] * 150}
    email = {"from": message.SENDER, "to": "somebody@example.net", "template": "costly", "variables": values}
    request = _post(stage, "/emails", email, key=stage.attacker.test_keys[0])
    return [attacker.Stream(port=stage.http, connections=8, requests=[request])]


def _big_bodies(stage: scene.Scene) -> list[attacker.Stream]:
    file = {"filename": "archive.bin", "content": base64.b64encode(bytes(LARGE_BYTES)).decode()}
    email = {
        **_email(),
        "attachments": [file],
        "send_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + DAY)),
    }
    request = _post(stage, "/emails", email, key=stage.attacker.test_keys[0])
    return [attacker.Stream(port=stage.http, connections=1, requests=[request])]


ALL = (
    Attack("flood", "sends with a live key over 32 connections, far above its rate", _flood),
    Attack("batch", "12 test keys on 60 connections send batches of 100 messages to 50", _batch_of_many_keys),
    Attack("batch-one-key", "the same with one test key on 8 connections", _batch_of_one_key),
    Attack("templates", "sends whose template takes almost as many steps as it may, on 8 connections", _templates),
    Attack("big-bodies", "scheduled test messages of 6.9 MB on one connection", _big_bodies),
)


def _email() -> dict[str, typing.Any]:
    return {"from": message.SENDER, "to": f"c-{message.SERIAL}@{outside.QUICK_DOMAIN}", "subject": "Hi", "text": "Hi"}


def _batch(stage: scene.Scene, key: str) -> bytes:
    everybody = [f"c{number}-{message.SERIAL}@{outside.QUICK_DOMAIN}" for number in range(BATCH_RECIPIENTS)]
    emails = [{**_email(), "to": everybody}] * BATCH_MESSAGES
    return _post(stage, "/emails/batch", {"emails": emails}, key=key)


def _post(stage: scene.Scene, path: str, body: bytes | dict[str, typing.Any], *, key: str) -> bytes:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{stage.http}\r\nAuthorization: Bearer {key}\r\n"
        f"Content-Type: application/json\r\nIdempotency-Key: attack-{message.SERIAL}\r\n"
        f"Content-Length: {len(content)}\r\n\r\n"
    ).encode() + content
