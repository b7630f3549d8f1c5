"""The interface, "Message" and "Recipient" once results are there, and the numbers that a running service cannot show.

What callers read before any attempt is in test_message.py, what endpoints are told in test_events.py.
"""

import datetime as dt
import re

import pytest

from postroad import config
from tests.conformance import live_service, webhook_service

WIRE_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


@pytest.mark.parametrize(
    "local_part, status, billing, code, attempts",
    [
        ("ada", "delivered", "settled", 250, 1),
        ("bounce", "bounced", "released", 550, 1),
        ("fail", "failed", "settled", 451, 3),
    ],
)
def test_a_recipient_shows_what_became_of_it(
    customer: webhook_service.Customer, local_part: str, status: str, billing: str, code: int, attempts: int
) -> None:
    """The table "Recipient": the code and the words of the last attempt, and the time of the one result it has."""
    before = dt.datetime.now(dt.UTC).replace(microsecond=0)
    (recipient,) = customer.recipients(customer.send(f"{local_part}@example.org")["id"])
    assert (recipient["email"], recipient["status"]) == (f"{local_part}@example.org", status)
    assert (recipient["billing_status"], recipient["attempt_count"]) == (billing, attempts)
    assert recipient["last_smtp_code"] == code
    assert isinstance(recipient["last_smtp_response"], str)
    assert recipient["last_smtp_response"]
    times = {name: recipient[name] for name in ("delivered_at", "bounced_at") if recipient[name] is not None}
    assert times.keys() == {"delivered": {"delivered_at"}, "bounced": {"bounced_at"}, "failed": set()}[status]
    for time in times.values():
        assert WIRE_TIME.fullmatch(time)
        assert before <= dt.datetime.fromisoformat(time) <= dt.datetime.now(dt.UTC)


@pytest.mark.parametrize(
    "local_parts, billing", [(["ada"], "settled"), (["ada", "bounce"], "settled"), (["bounce"], "released")]
)
def test_the_billing_of_a_message_follows_its_recipients(
    customer: webhook_service.Customer, local_parts: list[str], billing: str
) -> None:
    """Row `billing_status`: `reserved`, `settled`, `released`; the counts stay those of the send."""
    accepted = customer.send(*(f"{name}@example.org" for name in local_parts))
    assert accepted["billing_status"] == "reserved"
    customer.recipients(accepted["id"])
    message = customer.service.read(accepted["id"])
    assert message["billing_status"] == billing
    assert (message["recipient_count"], message["credits_reserved"]) == (len(local_parts), len(local_parts))


def test_a_test_message_says_so(service: live_service.Service) -> None:
    """Row `source`: `test` for a message that the dashboard's owner sends to try things out."""
    owner = {"Authorization": service.mine.owner}
    accepted = service.client.post("/v1/test-email", json={"to": "ada@example.org"}, headers=owner)
    assert (accepted.status_code, accepted.json()["source"]) == (202, "test")
    assert service.read(accepted.json()["id"])["source"] == "test"


def test_the_description_is_of_the_interfaces_version(service: live_service.Service) -> None:
    """Versioning: the interface description is version 1.0.0."""
    assert service.client.get("/openapi.json").json()["info"]["version"] == "1.0.0"


def test_webhooks_wait_by_default_as_the_interface_says() -> None:
    """Delivery to the receiver: 5 seconds, 5 minutes, 30 minutes, 2 hours, 5 hours, 10 hours."""
    assert config.load(environment={}, overrides={}).webhooks.retry_seconds == (5, 300, 1_800, 7_200, 18_000, 36_000)
