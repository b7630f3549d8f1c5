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
RETRYABLE = (429, 503)


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
        raise NoAnswer(str(problem)) from None
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


def call_service(call: dict[str, Any]) -> dict[str, Any]:
    """A send or a get, with its retries."""
    client, is_send = call["client"], call["operation"] == "send"
    if not is_send and FAULT != "takes every id" and not re.fullmatch("[A-Za-z0-9_-]+", call["id"]):
        return {"refused": "not an id"}
    url = client["base_url"] + ("/emails" if is_send else f"/emails/{call['id']}")
    made = ONE_KEY if FAULT == "has one key for all" else str(uuid.uuid4())
    key = call.get("idempotency_key", made) if is_send else None
    for number in itertools.count():
        if FAULT == "makes a new key" and is_send and number:
            key = str(uuid.uuid4())
        status, headers, body = None, None, b""
        try:
            status, headers, body = attempt(call, key, number, url)
        except NoAnswer as problem:
            document: Any = {"error": f"{problem}", "code": "connection_failed"}
        else:
            document = json.loads(body or "{}")
            if FAULT == "follows redirects" and "Location" in headers:
                url = parse.urljoin(url, headers["Location"])
                continue
        if status in {200, 202}:
            return {"result": document}
        error = described(call, status, headers, document, key)
        pause = waited(headers) + (0 if FAULT == "does not wait" else 0.3 * 2**number)
        is_worth_it = error["is_retryable"] or (FAULT == "repeats everything" and status == 400)
        has_time = pause < client.get("max_elapsed", 60)
        if not is_worth_it or not has_time or number == client.get("max_retries", 4) + (FAULT == "repeats too often"):
            return {"error": error}
        time.sleep(pause)
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
    is_retryable = status in RETRYABLE or code in {"idempotency_in_progress", "connection_failed"}
    return {
        "status": status,
        "code": code,
        "request_id": document.get("request_id"),
        "message": f"{status} {code}: {document.get('error')} {place}{reported}",
        "retry_after": waited(headers) or None,
        "idempotency_key": None if FAULT == "forgets the key" else key,
        "is_retryable": is_retryable,
        "is_insufficient_credits": code == "insufficient_credits" or FAULT == "is always poor",
        "is_idempotency_conflict": code == "idempotency_conflict",
    }


def verify(call: dict[str, Any]) -> bool:
    """Whether a webhook is genuine, as far as its signature says."""
    if FAULT == "trusts every webhook":
        return True
    parts = dict(part.partition("=")[::2] for part in call["header"].split(","))
    signed = parts["t"].encode() + b"." + base64.b64decode(call["body_base64"])
    return hmac.compare_digest(hmac.new(call["secret"].encode(), signed, hashlib.sha256).hexdigest(), parts["v1"])


for line in sys.stdin:
    given = json.loads(line)
    if FAULT == "ends in the middle":
        os._exit(3)
    said = {"result": verify(given)} if given["operation"] == "verify" else call_service(given)
    sys.stdout.write(json.dumps(said) + "\n")
    sys.stdout.flush()
