"""What needs the attention of an account, and what does not."""

from typing import Any

import pytest

from postroad.dashboard.mail import alerts
from postroad.model.events import events
from postroad.services.accounts import account_registry as accounts
from postroad.services.webhooks import delivery_log
from postroad.storage.mail import domains, webhooks
from postroad.storage.people import accounts as stored_accounts
from tests.storage import webhook_samples

NOW = 1_800_000_000_000_000
State = webhooks.State


def account(**changes: Any) -> stored_accounts.Account:
    members: dict[str, Any] = {
        "id": "acc_" + "1" * 28,
        "name": "Shop",
        "status": stored_accounts.ACTIVE,
        "suspended_reason": None,
        "available": 1_000,
        "reserved": 0,
        "created_at": NOW,
    }
    return stored_accounts.Account(**(members | changes))


def guard(state: accounts.State = "ok") -> accounts.Sending:
    return accounts.Sending(state, 7, 1_268, 62, 4.8896, 1, 0.0789, 200, 4.0, 8.0, 0.08, 0.3)


def entry(state: webhooks.State, *codes: int | None) -> delivery_log.Entry:
    """A delivery with an attempt for each code."""
    names: dict[str, Any] = {"account_id": "acc", "webhook_id": "whk"}
    delivery = webhooks.Delivery(
        **names,
        id="whd",
        event_id="evt",
        event_type=events.EventType.DELIVERED,
        message_id=None,
        recipient_id=None,
        url="https://shop.example/",
        body=b"{}",
        due_at=NOW,
        created_at=NOW,
        state=state,
    )
    attempts = [
        webhooks.Attempt(
            **names,
            delivery_id="whd",
            number=number,
            started_at=NOW,
            duration=1,
            status_code=code,
            response_body=None,
            error=None,
        )
        for number, code in enumerate(codes, start=1)
    ]
    return delivery_log.Entry(delivery, attempts, None)


def facts(**changes: Any) -> alerts.AlertFacts:
    members: dict[str, Any] = {
        "account": account(),
        "guard": guard(),
        "sender": "hello@shop.example",
        "daily_recipients": 100.0,
        "needs_credits": True,
        "has_sent": True,
        "may_operate": False,
        "deliveries": [],
    }
    return alerts.AlertFacts(**(members | changes))


def titles(**changes: Any) -> list[str]:
    return [alert.title for alert in alerts.alerts(facts(**changes))]


def test_an_account_in_order_has_no_notices() -> None:
    assert titles() == []
    assert titles(guard=guard("off")) == []


def test_a_warned_account_sees_its_rates_and_the_limit() -> None:
    (alert,) = alerts.alerts(facts(guard=guard("warned")))
    assert alert.kind == "warn"
    assert "1,268 recipients in 7 days, 4.89% did not exist" in alert.text
    assert "At 8% or 0.3% the account is suspended" in alert.text


def test_a_suspension_by_the_guard_which_every_page_shows_is_not_shown_twice() -> None:
    stopped = account(suspended_by=stored_accounts.BOUNCE_GUARD, suspended_at=NOW)
    assert titles(account=stopped, guard=guard("suspended")) == []


def test_a_webhook_that_the_service_disabled_is_shown_until_it_is_enabled() -> None:
    stopped = webhook_samples.webhook(enabled=0, disabled_reason="Every attempt has failed for 3 days.")
    by_a_user = webhook_samples.webhook(enabled=0)
    (alert,) = alerts.alerts(facts(webhooks=[by_a_user, stopped]))
    assert (alert.kind, alert.title, alert.path) == ("bad", "A webhook was disabled.", "/webhooks")
    assert alert.text.startswith("hooks.example.org: Every attempt has failed for 3 days.")


def test_without_a_domain_that_may_send_nothing_can_leave() -> None:
    assert titles(sender=None) == ["No verified domain."]
    waiting = domains.Domain("dom_1", "acc_1", "shop.example", None, 0)
    (alert,) = alerts.alerts(facts(sender=None, unverified=waiting))
    assert (alert.title, alert.path) == ("shop.example is not verified.", "/domains/dom_1")
    (alert,) = alerts.alerts(facts(sender=None, can_send_unverified=True))
    assert (alert.title, alert.text) == ("No domain.", "You can only send from your own domain.")


@pytest.mark.parametrize(
    "available, daily_recipients, said",
    [
        (0, 0.0, "New messages are rejected"),
        (250, 100.0, "last about 2 days"),
        (150, 100.0, "last about 1 day"),
        (50, 100.0, "last less than a day"),
    ],
)
def test_credits_that_run_out_soon_are_shown_with_the_time_that_is_left(
    available: int, daily_recipients: float, said: str
) -> None:
    (alert,) = alerts.alerts(facts(account=account(available=available), daily_recipients=daily_recipients))
    assert said in alert.text


def test_a_new_account_is_led_to_its_first_credits_without_alarm() -> None:
    new: dict[str, Any] = {"account": account(available=0), "has_sent": False, "daily_recipients": 0.0}
    (asks,) = alerts.alerts(facts(**new))
    assert (asks.kind, asks.title, asks.path) == ("", "You need credits to start sending.", "/credits")
    assert "Ask the operator" in asks.text
    (adds,) = alerts.alerts(facts(**new, may_operate=True))
    assert (adds.kind, adds.title) == ("", "Add credits to start sending.")
    assert (adds.path, adds.action) == (f"/operator/accounts/{account().id}", "Add credits")


def test_credits_that_last_are_not_mentioned() -> None:
    assert titles(account=account(available=300), daily_recipients=100.0) == []
    assert titles(account=account(available=1), daily_recipients=0.0) == []
    assert titles(account=account(available=0), needs_credits=False) == []


@pytest.mark.parametrize(
    "entries, said",
    [
        ([entry(State.FAILED, 500)], "responded 500"),
        ([entry(State.WAITING, 500, None)], "could not be reached"),
        ([entry(State.READY), entry(State.FAILED, 404)], "responded 404"),
    ],
)
def test_an_endpoint_that_does_not_answer_is_shown_with_its_latest_attempt(
    entries: list[delivery_log.Entry], said: str
) -> None:
    (alert,) = alerts.alerts(facts(deliveries=entries))
    assert said in alert.text


def test_an_endpoint_that_answers_again_has_no_notice() -> None:
    assert titles(deliveries=[entry(State.SUCCEEDED, 200), entry(State.FAILED, 500)]) == []
    assert titles(deliveries=[entry(State.READY)]) == []


def test_the_gravest_comes_first() -> None:
    found = titles(sender=None, account=account(available=0), guard=guard("warned"))
    assert found[0] == "No credits left."
    assert len(found) == 3
