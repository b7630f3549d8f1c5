"""Signatures and events of webhooks, against the vectors that all clients share."""

import base64
import hashlib
import hmac
import json
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from postroad_client import Event, PostroadError, SignatureVerificationError, parse_event, verify

FILE = Path(__file__).parents[2] / "conformance" / "webhook-signatures.json"
VECTORS: list[dict[str, Any]] = json.loads(FILE.read_text())["vectors"]
EVENTS: list[dict[str, Any]] = json.loads(FILE.read_text())["events"]


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
def test_a_vector(vector: dict[str, Any]) -> None:
    body = base64.b64decode(vector["body_base64"])
    assert verify(body, vector["header"], vector["secret"], vector["tolerance"], vector["now"]) is vector["valid"]


def test_the_clock_is_that_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    vector = next(vector for vector in VECTORS if vector["valid"])
    body = base64.b64decode(vector["body_base64"])
    assert not verify(body, vector["header"], vector["secret"])
    monkeypatch.setattr(time, "time", lambda: float(vector["now"]))
    assert verify(body, vector["header"], vector["secret"])


def test_a_body_that_was_parsed_is_a_mistake_of_the_caller() -> None:
    vector = next(vector for vector in VECTORS if vector["valid"])
    with pytest.raises(TypeError):
        verify(vector["body"], vector["header"], vector["secret"], 300, vector["now"])


def parsed(given: dict[str, Any]) -> Event:
    body = base64.b64decode(given["body_base64"])
    return parse_event(body, given["header"], given["secrets"], given["tolerance"], given["now"])


@pytest.mark.parametrize("given", EVENTS, ids=lambda given: given["name"])
def test_an_event(given: dict[str, Any]) -> None:
    expected = given["expect"].get("event")
    if expected is None:
        with pytest.raises(SignatureVerificationError if "error" in given["expect"] else ValueError):
            parsed(given)
        return
    event = parsed(given)
    assert (event.id, event.type) == (expected["id"], expected["type"])
    for name, value in expected["data"].items():
        assert getattr(event.data, "sender" if name == "from" else name) == value
    moment = expected["created_at"] and datetime.fromisoformat(expected["created_at"])
    assert event.created_at == moment


def test_one_secret_need_not_be_in_a_list() -> None:
    given = EVENTS[0]
    assert parsed({**given, "secrets": given["secrets"][0]}) == parsed(given)
    with pytest.raises(SignatureVerificationError):
        parsed({**given, "secrets": []})


def test_a_bad_signature_is_an_error_of_this_library() -> None:
    with pytest.raises(PostroadError, match="invalid_signature") as caught:
        parse_event(b"{}", None, "whsec_x")
    assert (caught.value.status, caught.value.code, caught.value.is_retryable) == (None, "invalid_signature", False)


def test_deep_json_is_no_event() -> None:
    body = b"[" * 100_000
    signature = hmac.new(b"whsec_x", b"7." + body, hashlib.sha256).hexdigest()
    with pytest.raises(ValueError, match="no event"):
        parse_event(body, f"t=7,v1={signature}", "whsec_x", now=7)
