"""Signatures of webhooks, against the vectors that all clients share."""

import base64
import json
import time
from pathlib import Path
from typing import Any

import pytest

from postroad_client import verify

FILE = Path(__file__).parents[2] / "conformance" / "webhook-signatures.json"
VECTORS: list[dict[str, Any]] = json.loads(FILE.read_text())["vectors"]


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
