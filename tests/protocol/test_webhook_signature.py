"""Signatures of webhooks, against the shared vectors and against the verifier of Stripe, whose scheme it is."""

import base64
import hashlib
import hmac
import json
import types
from pathlib import Path
from typing import Any

import pytest
import stripe
from hypothesis import given
from hypothesis import strategies as st

from postroad.protocol.signatures import webhook_signature

ROOT = Path(__file__).parent.parent.parent
VECTORS: list[dict[str, Any]] = json.loads((ROOT / "clients" / "conformance" / "webhook-signatures.json").read_text())[
    "vectors"
]
# Where Stripe's verifier takes text only, takes more than we do, or fails.
NOT_FOR_STRIPE = {
    "bytes that are no text",
    "301 seconds ahead",
    "a time that has more digits than any time",
    "a blank after the time",
    "letters beyond ASCII in the signature",
    "a zero before the time, which is not what was signed",
    "two times",
    "the signature with an equals sign behind it",
}
SECRET = "whsec_test_secret"
NOW = 1_700_000_000


def name(vector: dict[str, Any]) -> str:
    return str(vector["name"])


def refusal(vector: dict[str, Any]) -> str | None:
    return webhook_signature.why_refused(
        vector["header"] or "",
        base64.b64decode(vector["body_base64"]),
        secret=vector["secret"],
        now=vector["now"],
        tolerance=vector["tolerance"],
    )


def stripe_accepts(vector: dict[str, Any]) -> bool:
    body = base64.b64decode(vector["body_base64"])
    try:
        stripe.WebhookSignature.verify_header(body, vector["header"], vector["secret"], vector["tolerance"])
    except stripe.SignatureVerificationError:
        return False
    return True


@pytest.mark.parametrize("vector", VECTORS, ids=name)
def test_a_vector_has_the_result_that_it_says(vector: dict[str, Any]) -> None:
    assert (refusal(vector) is None) == vector["valid"]


@pytest.mark.parametrize("vector", [one for one in VECTORS if name(one) not in NOT_FOR_STRIPE], ids=name)
def test_the_verifier_of_stripe_agrees_on_a_vector(vector: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stripe._webhook.time", types.SimpleNamespace(time=lambda: vector["now"]))
    assert stripe_accepts(vector) == vector["valid"]


def test_the_vectors_describe_themselves() -> None:
    names = [name(vector) for vector in VECTORS]
    assert len(set(names)) == len(names)
    assert set(names) >= NOT_FOR_STRIPE
    for vector in VECTORS:
        assert vector["body"] is None or vector["body"].encode() == base64.b64decode(vector["body_base64"])
        assert vector["tolerance"] == 300
    # A verifier that compares what is there is tried with a signature that is empty, begins right, or goes on.
    good = VECTORS[0]["header"].partition("v1=")
    headers = {"".join((*good[:2], value)) for value in ("", good[2][0], good[2][:-1], f"{good[2]}0")}
    assert {vector["header"]: vector["valid"] for vector in VECTORS if vector["header"] in headers} == dict.fromkeys(
        headers, False
    )


def test_the_first_vector_is_what_we_send() -> None:
    sent = webhook_signature.header([SECRET], VECTORS[0]["body"].encode(), timestamp=NOW)
    assert sent == VECTORS[0]["header"]
    assert sent.endswith("v1=fee6dbf2a49f3643de5eaadb7fed315997122b97df1f7095f56114b713239990")


def test_each_secret_signs_in_the_order_in_which_they_are_given() -> None:
    secrets = ["whsec_new", "whsec_old"]
    digests = [webhook_signature.digest(secret, b"{}", timestamp=NOW) for secret in secrets]
    sent = webhook_signature.header(secrets, b"{}", timestamp=NOW)
    assert sent == f"t={NOW},v1={digests[0]},v1={digests[1]}"
    assert [webhook_signature.why_refused(sent, b"{}", secret=secret, now=NOW) for secret in secrets] == [None, None]


@pytest.mark.parametrize(
    "header, secret, reason",
    [
        ("", SECRET, "the Service-Signature header is not of the form t=<seconds>,v1=<hex>"),
        (webhook_signature.header([SECRET], b"{}", timestamp=NOW), "", "the secret is empty"),
        (webhook_signature.header([SECRET], b"{ }", timestamp=NOW), SECRET, "the signature does not match the secret"),
        (
            webhook_signature.header([SECRET], b"{}", timestamp=NOW - 301),
            SECRET,
            "the request was signed 301 seconds from now, more than 300",
        ),
    ],
)
def test_a_refusal_says_why(header: str, secret: str, reason: str) -> None:
    refused = webhook_signature.why_refused(header, b"{}", secret=secret, now=NOW)
    assert refused is not None
    assert refused.startswith(reason)


@given(st.binary(), st.integers(0, 10**15 - 1), st.data())
def test_what_is_signed_is_trusted_and_whatever_differs_in_one_bit_is_not(
    body: bytes, now: int, data: st.DataObject
) -> None:
    sent = webhook_signature.header([SECRET], body, timestamp=now)
    assert webhook_signature.why_refused(sent, body, secret=SECRET, now=now) is None
    if body:
        changed = bytearray(body)
        changed[data.draw(st.integers(0, len(body) - 1))] ^= 1 << data.draw(st.integers(0, 7))
        assert webhook_signature.why_refused(sent, bytes(changed), secret=SECRET, now=now) is not None


@given(st.text(st.sampled_from("tv1=,0 aé")), st.binary())
def test_no_header_makes_it_fail(header: str, body: bytes) -> None:
    assert webhook_signature.why_refused(header, body, secret=SECRET, now=NOW) is not None


# The signature of Standard Webhooks, by the specification's example and by hand.


def test_the_example_of_the_specification_is_signed_alike() -> None:
    headers = webhook_signature.standard_headers(
        ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"],
        b'{"test": 2432232314}',
        event_id="msg_p5jXN8AQM9LWM0D4loKWxJek",
        timestamp=1614265330,
    )
    assert headers == (
        ("webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek"),
        ("webhook-timestamp", "1614265330"),
        ("webhook-signature", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="),
    )


def test_every_secret_signs_newest_first() -> None:
    secrets = ["whsec_" + "a" * 43, "whsec_" + "b" * 43]
    value = dict(webhook_signature.standard_headers(secrets, b"\xff", event_id="evt_1", timestamp=7))[
        "webhook-signature"
    ]
    keys = [base64.b64decode("a" * 43 + "="), base64.b64decode("b" * 43 + "=")]
    assert value.split(" ") == [
        "v1," + base64.b64encode(hmac.new(key, b"evt_1.7.\xff", hashlib.sha256).digest()).decode() for key in keys
    ]


@pytest.mark.parametrize("length", [40, 42, 43, 44])
def test_a_secret_is_base64_with_or_without_its_padding(length: int) -> None:
    text = "Zm9v" * 10 + "Zm9v"[: length - 40]
    padded = text + "=" * (-len(text) % 4)
    assert webhook_signature.standard_key("whsec_" + text) == base64.b64decode(padded)
