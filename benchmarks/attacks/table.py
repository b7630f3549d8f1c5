"""The attacks: for each its name, what the attacker does, and the connections and requests that do it.

A function is called when the service runs, so that it can log in or send something first.
"""

import base64
import http.client
import json
import time
import typing
import urllib.parse

from benchmarks import message
from benchmarks.attacks import attacker, outside, scene, victim

DAY = 86_400
LARGE_BYTES = 6_900_000
BATCH_MESSAGES, BATCH_RECIPIENTS = 100, 50
# What no index finds, over the attacker's messages of a month.
SEARCHES = ("zebra elephant -order", "to:nobody* OR cause:mailbox_full code:251", "from:nobody* tag:receipt")
# As many silent connections from each as an address may have, and together more than fit onto two frontends.
INBOUND_ADDRESSES = {f"127.0.9.{number}": 20 for number in range(1, 25)}
# Each is a network of its own, with a quota of its own.
ROUTE_ADDRESSES = {f"127.0.{number}.1": 4 for number in range(10, 20)}
SUBMISSION_ADDRESSES = {f"127.0.9.{number}": 200 for number in range(1, 9)}


class Attack(typing.NamedTuple):
    """A row of the table; `listener` is how the victim sends."""

    name: str
    about: str
    streams: typing.Callable[[scene.Scene], list[attacker.Stream]]
    listener: victim.Listener = "http"


def _flood(stage: scene.Scene) -> list[attacker.Stream]:
    body = message.as_json("ascii").replace(message.RECIPIENT_DOMAIN.encode(), outside.QUICK_DOMAIN.encode())
    return _sending(stage, 32, _post("/emails", body, key=stage.attacker.key))


def _batch_of_many_keys(stage: scene.Scene) -> list[attacker.Stream]:
    return [stream for key in stage.attacker.test_keys for stream in _sending(stage, 5, _batch(key))]


def _batch_of_one_key(stage: scene.Scene) -> list[attacker.Stream]:
    return _sending(stage, 8, _batch(stage.attacker.test_keys[0]))


def _slow_destinations(stage: scene.Scene) -> list[attacker.Stream]:
    hosts = (f"h{number}-{message.SERIAL}.{outside.HANGING_DOMAIN}" for number in range(BATCH_MESSAGES))
    emails = [{**_email(), "to": f"somebody@{host}"} for host in hosts]
    return _sending(stage, 1, _post("/emails/batch", {"emails": emails}, key=stage.attacker.key))


def _hanging_webhooks(stage: scene.Scene) -> list[attacker.Stream]:
    email = {**_email(), "tags": [scene.HANGING_TAG]}
    return _sending(stage, 8, _post("/emails", email, key=stage.attacker.key))


def _templates(stage: scene.Scene) -> list[attacker.Stream]:
    values = {"rows": [{"n": 1}] * 300, "cells": [{"value": "x"}] * 150}
    email = {"from": message.SENDER, "to": "somebody@example.net", "template": "costly", "variables": values}
    return _sending(stage, 8, _post("/emails", email, key=stage.attacker.test_keys[0]))


def _search(stage: scene.Scene) -> list[attacker.Stream]:
    words = [urllib.parse.urlencode({"search": text}) for text in SEARCHES]
    cookies = stage.cookies(stage.attacker)
    pages = [_get(f"/messages?{each}", f"Cookie: {cookies}") for each in words]
    listed = [_get(f"/v1/messages?{each}", f"Authorization: Bearer {stage.attacker.key}") for each in words]
    return [*_sending(stage, 8, *pages), *_sending(stage, 8, *listed)]


def _attachments_by_url(stage: scene.Scene) -> list[attacker.Stream]:
    files = [{"filename": "file.bin", "path": f"{stage.hooks}/file"}]
    request = _post("/compat/resend/emails", {**_email(), "attachments": files}, key=stage.attacker.test_keys[0])
    return _sending(stage, 8, request)


def _inbound_connections(stage: scene.Scene) -> list[attacker.Stream]:
    return [
        attacker.Stream(port=stage.inbound, connections=count, source=source)
        for source, count in INBOUND_ADDRESSES.items()
    ]


def _mail_to_a_route(stage: scene.Scene) -> list[attacker.Stream]:
    content = (
        f"From: Somebody <somebody@{outside.QUICK_DOMAIN}>\r\nTo: {scene.ROUTE}\r\n"
        f"Message-ID: <{message.SERIAL}@{outside.QUICK_DOMAIN}>\r\nSubject: An order\r\n\r\n{'Where is it? ' * 300}\r\n"
    ).encode()
    request = (
        f"EHLO {outside.QUICK_DOMAIN}\r\nMAIL FROM:<somebody@{outside.QUICK_DOMAIN}>\r\nRCPT TO:<{scene.ROUTE}>\r\n"
        f"BDAT {len(content)} LAST\r\n"
    ).encode()
    return [
        attacker.Stream(
            port=stage.inbound, connections=count, requests=[request + content], source=source, is_smtp=True
        )
        for source, count in ROUTE_ADDRESSES.items()
    ]


def _submission_connections(stage: scene.Scene) -> list[attacker.Stream]:
    return [
        attacker.Stream(port=stage.submission, connections=count, source=source)
        for source, count in SUBMISSION_ADDRESSES.items()
    ]


def _big_bodies(stage: scene.Scene) -> list[attacker.Stream]:
    file = {"filename": "archive.bin", "content": base64.b64encode(bytes(LARGE_BYTES)).decode()}
    tomorrow = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + DAY))
    email = {**_email(), "attachments": [file], "send_at": tomorrow}
    return _sending(stage, 1, _post("/emails", email, key=stage.attacker.test_keys[0]))


def _exports(stage: scene.Scene) -> list[attacker.Stream]:
    return _sending(stage, 8, _get("/messages.csv", f"Cookie: {stage.cookies(stage.attacker)}"))


def _previews(stage: scene.Scene) -> list[attacker.Stream]:
    html = '<div class="a"><p style="color: red">Offer <a href="https://example.com/?a=b">here</a></p></div>' * 20_000
    email = {**_email(), "to": f"somebody@{outside.QUICK_DOMAIN}", "html": f"<style>.a {{ color: blue }}</style>{html}"}
    connection = http.client.HTTPConnection("127.0.0.1", stage.http)
    key = {"Authorization": f"Bearer {stage.attacker.key}", "Content-Type": "application/json"}
    connection.request("POST", "/emails", body=json.dumps(email), headers={**key, "Idempotency-Key": "previews"})
    path = f"/messages/{json.load(connection.getresponse())['id']}"
    connection.close()
    cookies = f"Cookie: {stage.cookies(stage.attacker)}"
    return [
        *_sending(stage, 6, _get(path, cookies)),
        *_sending(stage, 6, _get(f"{path}/preview/html", cookies)),
        *_sending(stage, 6, _get(f"/v1{path}/checks", f"Authorization: Bearer {stage.attacker.key}")),
    ]


def _approvals(stage: scene.Scene) -> list[attacker.Stream]:
    email = {
        **_email(),
        "to": [f"{name}@{outside.QUICK_DOMAIN}" for name in ("one", "two")],
        "text": "Offer. " * 140_000,
    }
    cookies = stage.cookies(stage.attacker)
    return [
        *_sending(stage, 8, _post("/emails", email, key=stage.attacker.approval_key)),
        *_sending(stage, 8, _get("/approvals", f"Cookie: {cookies}")),
    ]


ALL = (
    Attack("flood", "sends with a live key on 32 connections, far above its rate", _flood),
    Attack("batch", "batches of 100 messages to 50 recipients, 12 test keys on 60 connections", _batch_of_many_keys),
    Attack("batch-one-key", "the same with one test key on 8 connections", _batch_of_one_key),
    Attack("slow-destinations", "mail to hundreds of hosts that hold the final reply", _slow_destinations),
    Attack("hanging-webhooks", "events for ten endpoints that never answer", _hanging_webhooks),
    Attack("templates", "sends whose template takes almost as many steps as it may, on 8 connections", _templates),
    Attack("search", "searches that no index answers, on 16 connections", _search),
    Attack("attachments-by-url", "sends with a file of 4 MiB by URL, on 8 connections", _attachments_by_url),
    Attack(
        "connections-inbound",
        "480 silent connections from 24 addresses; the victim is a mail server that wants a greeting",
        _inbound_connections,
        listener="inbound",
    ),
    Attack(
        "connections-submission",
        "1,600 silent connections from 8 addresses; the victim submits over SMTP",
        _submission_connections,
        listener="submission",
    ),
    Attack("mail-to-a-route", "mail to a route of the attacker, on 40 connections from 10 networks", _mail_to_a_route),
    Attack("big-bodies", "scheduled test messages of 6.9 MB on one connection", _big_bodies),
    Attack("exports", "CSV exports of all messages, on 8 connections", _exports),
    Attack("previews", "pages, previews and checks of a message with 2 MB of HTML, on 18 connections", _previews),
    Attack("approvals", "large requests that need approval, and their page, on 16 connections", _approvals),
)


def _email() -> dict[str, typing.Any]:
    return {"from": message.SENDER, "to": f"c-{message.SERIAL}@{outside.QUICK_DOMAIN}", "subject": "Hi", "text": "Hi"}


def _batch(key: str) -> bytes:
    everybody = [f"c{number}-{message.SERIAL}@{outside.QUICK_DOMAIN}" for number in range(BATCH_RECIPIENTS)]
    emails = [{**_email(), "to": everybody}] * BATCH_MESSAGES
    return _post("/emails/batch", {"emails": emails}, key=key)


def _post(path: str, body: bytes | dict[str, typing.Any], *, key: str) -> bytes:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {key}\r\n"
        f"Content-Type: application/json\r\nIdempotency-Key: attack-{message.SERIAL}\r\n"
        f"Content-Length: {len(content)}\r\n\r\n"
    ).encode() + content


def _get(path: str, *fields: str) -> bytes:
    return "\r\n".join([f"GET {path} HTTP/1.1", "Host: 127.0.0.1", *fields, "", ""]).encode()


def _sending(stage: scene.Scene, connections: int, *requests: bytes) -> list[attacker.Stream]:
    """So many connections over HTTP that send these in turn."""
    return [attacker.Stream(port=stage.http, connections=connections, requests=list(requests))]
