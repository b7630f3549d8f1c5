"""The signature of Standard Webhooks, by the specification's example and by hand."""

import base64
import hashlib
import hmac

import pytest

from postroad.protocol.signatures import webhook_signature


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
