"""What needs the attention of an account, and what does not."""

from typing import Any

import pytest

from postroad.dashboard.framework import verdicts
from postroad.dashboard.mail import alerts
from postroad.services.accounts import account_registry as accounts
from postroad.services.messages import queue_inspection
from postroad.storage.mail import delivery_controls, domains
from postroad.storage.operations import processes
from postroad.storage.people import accounts as stored_accounts
from tests.storage import webhook_samples

NOW = 1_800_000_000_000_000


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


def facts(**changes: Any) -> alerts.AlertFacts:
    members: dict[str, Any] = {
        "account": account(),
        "guard": guard(),
        "sender": "hello@shop.example",
        "daily_recipients": 100.0,
        "needs_credits": True,
        "has_sent": True,
        "may_operate": False,
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
    assert "4.89% of addresses didn't exist and 0.08% reported spam, out of 1,268 in 7 days" in alert.text
    assert "At 8% or 0.3% we suspend sending" in alert.text


def test_a_suspension_by_the_guard_which_every_page_shows_is_not_shown_twice() -> None:
    stopped = account(suspended_by=stored_accounts.BOUNCE_GUARD, suspended_at=NOW)
    assert titles(account=stopped, guard=guard("suspended")) == []


def test_a_webhook_that_the_service_disabled_is_shown_until_it_is_enabled() -> None:
    stopped = webhook_samples.webhook(enabled=0, disabled_reason="Every attempt has failed for 3 days.")
    by_a_user = webhook_samples.webhook(enabled=0)
    (alert,) = alerts.alerts(facts(webhooks=[by_a_user, stopped]))
    assert (alert.kind, alert.title, alert.path) == (
        "bad",
        "The webhook to hooks.example.org was disabled",
        "/webhooks/whk_1",
    )
    assert alert.text.startswith("Every attempt has failed for 3 days.")


def test_without_a_domain_that_may_send_nothing_can_leave() -> None:
    assert titles(sender=None) == ["No verified domain"]
    waiting = domains.Domain("dom_1", "acc_1", "shop.example", None, 0)
    (alert,) = alerts.alerts(facts(sender=None, unverified=waiting))
    assert (alert.title, alert.path) == ("shop.example is not verified", "/domains/dom_1")
    (alert,) = alerts.alerts(facts(sender=None, can_send_unverified=True))
    assert (alert.title, alert.text) == ("No domain", "You can only send from your own domain.")


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
    assert (asks.kind, asks.title, asks.path) == ("", "You need credits to start sending", "/credits")
    assert "Ask the operator" in asks.text
    (adds,) = alerts.alerts(facts(**new, may_operate=True))
    assert (adds.kind, adds.title) == ("", "Add credits to start sending")
    assert (adds.path, adds.action) == (f"/operator/accounts/{account().id}", "Add credits")


def test_credits_that_last_are_not_mentioned() -> None:
    assert titles(account=account(available=300), daily_recipients=100.0) == []
    assert titles(account=account(available=1), daily_recipients=0.0) == []
    assert titles(account=account(available=0), needs_credits=False) == []


def test_a_webhook_that_fails_is_shown_until_it_accepts_an_event() -> None:
    works = webhook_samples.webhook()
    fails = webhook_samples.webhook("whk_2", failing_since=NOW)
    disabled = webhook_samples.webhook("whk_3", failing_since=NOW, enabled=0)
    (alert,) = alerts.alerts(facts(webhooks=[works, fails, disabled]))
    assert (alert.kind, alert.title) == ("warn", "The webhook to hooks.example.org is failing")
    assert (alert.since, alert.path) == (NOW, "/webhooks/whk_2")


def test_a_verified_domain_without_its_records_is_shown() -> None:
    lost = domains.Domain("dom_1", "acc_1", "shop.example", NOW, 0, failing_since=NOW)
    never = domains.Domain("dom_2", "acc_1", "other.example", None, 0, failing_since=NOW)
    (alert,) = alerts.alerts(facts(domains=[lost, never]))
    assert (alert.title, alert.since, alert.path) == (
        "The DNS records of shop.example are gone",
        NOW,
        "/domains/dom_1",
    )


def status(name: str, state: str) -> processes.QueueStatus:
    return processes.QueueStatus("mail1-7", name, state, "421 secret of another account", NOW, NOW)


def test_a_provider_has_one_alert_and_accounts_learn_no_reason_of_operators() -> None:
    google, yahoo = verdicts.Deferring("google", 50, NOW), verdicts.Deferring("yahoo", 30, NOW)
    conditions = queue_inspection.Conditions(
        {
            "google": status("google", "held"),
            "yahoo": status("yahoo", "blocked"),
            "apple": status("apple", "paused"),
            "microsoft": status("microsoft", "paused"),
            "mx.example.org": status("mx.example.org", "blocked"),
        },
        {},
    )
    found = list(
        alerts.alerts(facts(conditions=conditions, deferring=[google, yahoo], used=frozenset({"apple", "google"})))
    )
    assert [(alert.title, alert.since) for alert in found] == [
        ("Mail to Google is paused by the operator", NOW),
        ("Yahoo is deferring 30%", NOW),
        ("Apple asked us to slow down", None),
    ]
    assert "secret" not in repr(found)
    assert found[1].path == "/messages?search=provider%3Ayahoo+outcome%3Aretried+after%3A2027-01-15T08%3A00Z"


def test_only_the_holds_of_the_account_are_shown() -> None:
    held = [
        delivery_controls.Hold("", "", "why", NOW),
        delivery_controls.Hold(account().id, "example.org", "why", NOW),
        delivery_controls.Hold("acc_other", "", "why", NOW),
    ]
    conditions = queue_inspection.Conditions({}, {(hold.account_id, hold.domain): hold for hold in held})
    found = [(alert.kind, alert.title) for alert in alerts.alerts(facts(conditions=conditions))]
    assert found == [
        ("bad", "Mail is held by the operator"),
        ("warn", "Mail to example.org is held by the operator"),
    ]


def test_the_gravest_comes_first() -> None:
    rate = verdicts.Rate(verdicts.Results(0, 0), verdicts.Results(0, 0))
    found = verdicts.compose(
        alerts.alerts(facts(sender=None, account=account(available=0), guard=guard("warned"))), rate
    )
    assert [alert.title for alert in found.problems] == [
        "No credits left",
        "Bounce guard warning",
        "No verified domain",
    ]
