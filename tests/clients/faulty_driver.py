"""A driver with a small client that is right where the tests look, and wrong in the one way its argument names.

The conformance suite has to notice each of these ways: a suite that cannot fail proves nothing.
"""

import base64
import email.utils
import hashlib
import hmac
import http.client
import itertools
import json
import os
import re
import sys
import time
import uuid
from typing import Any
from urllib import parse

FAULT = sys.argv[1]
ONE_KEY = str(uuid.uuid4())
# What a kind client needs to know of an error.
RETRYABLE = (429, 503) if FAULT == "gives up at proxies" else (408, 429, 500, 502, 503, 504)
FINAL = ("delivered", "bounced", "failed", "canceled", "expired")


class NoAnswer(Exception):
    """The connection failed."""


def attempt(call: dict[str, Any], key: str | None, number: int, url: str) -> tuple[int, http.client.HTTPMessage, bytes]:
    """One request and its whole answer."""
    client, address = call["client"], parse.urlsplit(url)
    connection = http.client.HTTPConnection(address.netloc, timeout=client.get("timeout", 60))
    pair = base64.b64encode(f"{client.get('username')}:{client.get('password')}".encode()).decode()
    headers = {
        "Authorization": f"Bearer {client['token']}" if "token" in client else f"Basic {pair}",
        "User-Agent": "robot/1.0" if FAULT == "hides its name" else "postroad-python/0.1.0",
    }
    body = None
    if call["operation"] == "send":
        mail = dict(call["email"])
        if FAULT == "sends null":
            mail["cc"] = None
        if FAULT == "changes the body":
            mail["tags"] = [str(number)]
        body = json.dumps(mail)
        headers |= {"Content-Type": "application/json", "Idempotency-Key": str(key)}
    try:
        connection.request("GET" if body is None else "POST", address.path, body=body, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    except http.client.IncompleteRead as half:
        if FAULT == "trusts half an answer":
            return 202, http.client.HTTPMessage(), half.partial
        raise NoAnswer("the answer was cut short") from None
    except (OSError, http.client.HTTPException) as problem:
        raise NoAnswer(f"{address.netloc}: {problem}") from None
    finally:
        connection.close()


def waited(headers: http.client.HTTPMessage | None) -> float:
    """What Retry-After asks for."""
    text = headers.get("Retry-After", "") if headers else ""
    if FAULT == "ignores Retry-After" or not text:
        return 0
    if text.isdigit():
        return int(text)
    moment = email.utils.parsedate_to_datetime(text)
    return max(0, moment.timestamp() - time.time())


def pause(asked: float, number: int, left: float) -> bool:
    """Wait before a retry, if there is time for that; whether there was."""
    seconds = asked + (0 if FAULT == "does not wait" else 0.3 * 2**number)
    if FAULT == "waits in vain" and seconds >= left:
        time.sleep(max(0, left))
    if FAULT == "waits too little" and 0 < left <= seconds:
        seconds = 0.01
    has_time = seconds < left or (FAULT == "repeats too often" and number == 0)
    if not has_time or (FAULT == "counts attempts" and number == 4):
        return False
    time.sleep(seconds)
    return True


def call_service(call: dict[str, Any]) -> dict[str, Any]:
    """A send or a get, with its retries."""
    client, is_send = call["client"], call["operation"] == "send"
    if not is_send and FAULT != "takes every id" and not re.fullmatch("[A-Za-z0-9_-]+", call["id"]):
        return {"refused": "not an id"}
    url = client["base_url"] + ("/emails" if is_send else f"/emails/{call['id']}")
    made = ONE_KEY if FAULT == "has one key for all" else str(uuid.uuid4())
    key = call.get("idempotency_key", made) if is_send else None
    started = time.monotonic()
    for number in itertools.count():
        if FAULT == "makes a new key" and is_send and number:
            key = str(uuid.uuid4())
        status, headers, body = None, None, b""
        try:
            status, headers, body = attempt(call, key, number, url)
        except NoAnswer as problem:
            document: Any = {"error": f"{problem}", "code": "connection_failed"}
        else:
            document = json.loads(body or "{}") if body[:1] in b"{" else {}
            if FAULT == "follows redirects" and "Location" in headers:
                url = parse.urljoin(url, headers["Location"])
                continue
        if status in {200, 202}:
            return {"result": document}
        error = described(call, status, headers, document, key)
        is_worth_it = error["is_retryable"] or (FAULT == "repeats everything" and status == 400)
        # After a scenario that went wrong, nobody answers any more.
        is_hopeless = status is None and number == 4
        left = client.get("max_elapsed", 60) - (time.monotonic() - started)
        if not is_worth_it or is_hopeless or not pause(waited(headers), number, left):
            return {"error": error}
    raise AssertionError


def described(
    call: dict[str, Any],
    status: int | None,
    headers: http.client.HTTPMessage | None,
    document: dict[str, Any],
    key: str | None,
) -> dict[str, Any]:
    """The members of an error."""
    code = document.get("code", "unexpected_response")
    place = headers.get("Location", "") if headers else ""
    reported = f" with {call['client'].get('token')}" if FAULT == "tells the token" else ""
    page = "" if document else " Bad Gateway"
    codes = {"idempotency_in_progress", "connection_failed", "timed_out"}
    if FAULT == "gives up when refused":
        codes.remove("connection_failed")
    is_retryable = status in RETRYABLE or code in codes
    return {
        "status": status,
        "code": code,
        "request_id": document.get("request_id"),
        "kind": "server" if FAULT == "has one kind" else kind(status, code),
        "message": f"{status} {code}: {document.get('error')} {place}{reported}{page}",
        "retry_after": waited(headers) or None,
        "idempotency_key": None if FAULT == "forgets the key" else key,
        "is_retryable": is_retryable,
        "is_insufficient_credits": code == "insufficient_credits" or FAULT == "is always poor",
        "is_idempotency_conflict": code == "idempotency_conflict",
    }


def kind(status: int | None, code: str) -> str:
    """The kind of an error."""
    if status is None:
        return code
    words = {401: "authentication", 402: "insufficient_credits", 403: "permission_denied", 404: "not_found"}
    words |= {409: "idempotency", 429: "rate_limited"}
    if status < 400:
        return "unexpected_response"
    return words.get(status, "invalid_request" if status < 500 else "server")


def wait(call: dict[str, Any]) -> dict[str, Any]:
    """A get, until every recipient is final."""
    started, pause = time.monotonic(), 1.0
    while True:
        said = call_service({**call, "operation": "get"})
        statuses = [recipient.get("status") for recipient in said.get("result", {}).get("recipients", [])]
        is_final = bool(statuses) and all(status in FINAL for status in statuses)
        if FAULT == "believes the status" and said.get("result", {}).get("status", "queued") != "queued":
            is_final = True
        if "result" not in said or is_final:
            return said
        left = call["timeout"] - (time.monotonic() - started)
        if left <= 0:
            error = {"error": call["id"], "code": "timed_out"}
            return {"error": described(call, None, None, error, None)}
        time.sleep(min(pause, left))
        pause *= 1.5


def parse_event(call: dict[str, Any]) -> dict[str, Any]:
    """The event of a webhook with a good signature."""
    if FAULT != "trusts every webhook" and not any(verify({**call, "secret": secret}) for secret in call["secrets"]):
        return {"error": {"kind": "signature"}}
    try:
        event = json.loads(base64.b64decode(call["body_base64"]))
        return {"result": {**event, "data": {"test": False, **(event["data"] or {})}}}
    except (ValueError, KeyError, TypeError) as problem:
        return {"refused": str(problem)}


def verify(call: dict[str, Any]) -> bool:
    """Whether a webhook is genuine, as far as its signature says."""
    if FAULT == "trusts every webhook":
        return True
    parts = {"t": "", "v1": ""} | dict(part.partition("=")[::2] for part in (call["header"] or "").split(","))
    if not call["secret"] or not parts["t"].isdigit() or abs(int(parts["t"]) - call["now"]) > call["tolerance"]:
        return False
    signed = parts["t"].encode() + b"." + base64.b64decode(call["body_base64"])
    return hmac.compare_digest(hmac.new(call["secret"].encode(), signed, hashlib.sha256).hexdigest(), parts["v1"])


OPERATIONS = {
    "send": call_service,
    "get": call_service,
    "wait": wait,
    "verify": lambda given: {"result": verify(given)},
    "parse_event": parse_event,
}

for line in sys.stdin:
    given = json.loads(line)
    if FAULT == "ends in the middle":
        os._exit(3)
    said = OPERATIONS[given["operation"]](given)
    sys.stdout.write(json.dumps(said) + "\n")
    sys.stdout.flush()
