"""Alerts: what stops mail or soon will, each with what to do.

Pure: the facts come from services.
"""

from collections.abc import Iterator, Sequence
from typing import Final, Literal

import msgspec

from postroad.services.accounts import account_registry as accounts
from postroad.services.webhooks import delivery_log, endpoints
from postroad.storage.mail import domains as stored_domains
from postroad.storage.mail import webhooks as mail_webhooks
from postroad.storage.people import accounts as stored_accounts

# Adding credits takes people time: warn when fewer days than this are left.
LOW_CREDIT_DAYS: Final = 3


class AlertFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The state of an account.

    `sender` is None if no domain may send; then `unverified` is one that is registered. `may_operate`: the reader can
    add credits.
    """

    account: stored_accounts.Account
    guard: accounts.Sending
    sender: str | None
    unverified: stored_domains.Domain | None = None
    can_send_unverified: bool = False
    daily_recipients: float
    needs_credits: bool
    has_sent: bool
    may_operate: bool
    deliveries: Sequence[delivery_log.Entry]
    webhooks: Sequence[mail_webhooks.Webhook] = ()


class Alert(msgspec.Struct, frozen=True):
    """A problem, and the page that solves it. Without a kind it is only the next step."""

    kind: Literal["bad", "warn", ""]
    title: str
    text: str
    path: str
    action: str


def alerts(facts: AlertFacts) -> list[Alert]:
    found = [*_guard(facts), *_domain(facts), *_credits(facts), *_webhook(facts)]
    return sorted(found, key=lambda alert: alert.kind != "bad")


def _guard(facts: AlertFacts) -> Iterator[Alert]:
    """A warning. Every page says so when the account is suspended."""
    guard = facts.guard
    if guard.state == "warned":
        text = (
            f"Of {guard.recipients:,} recipients in {_days(guard.days)}, {round(guard.bounce_percent, 2):g}% did not "
            f"exist and {round(guard.complaint_percent, 2):g}% complained. At {guard.suspend_percent:g}% or "
            f"{guard.complaint_suspend_percent:g}% the account is suspended. Send only to people who opted in."
        )
        yield Alert("warn", "Bounce guard warning.", text, "/suppressions", "See suppressions")


def _domain(facts: AlertFacts) -> Iterator[Alert]:
    if facts.sender is None and facts.unverified is not None:
        name = facts.unverified.name
        text = "Add its DNS records; you can send once they are found."
        yield Alert("warn", f"{name} is not verified.", text, f"/domains/{facts.unverified.id}", "See the records")
    elif facts.sender is None and facts.can_send_unverified:
        yield Alert("warn", "No domain.", "You can only send from your own domain.", "/domains", "Add a domain")
    elif facts.sender is None:
        text = "Add a domain and its DNS records; you can send once it is verified."
        yield Alert("warn", "No verified domain.", text, "/domains", "Go to domains")


def _credits(facts: AlertFacts) -> Iterator[Alert]:
    left = facts.account.available
    if not facts.needs_credits:
        return
    if not left and not facts.has_sent:
        yield _first_credits(facts)
    elif not left:
        yield Alert("bad", "No credits left.", "New messages are rejected.", "/credits", "Add credits")
    elif left < facts.daily_recipients * LOW_CREDIT_DAYS:
        days = int(left / facts.daily_recipients)
        lasts = f"about {_days(days)}" if days else "less than a day"
        text = f"{left:,} left. At the current rate they last {lasts}."
        yield Alert("warn", "Credits are running out.", text, "/credits", "Add credits")


def _first_credits(facts: AlertFacts) -> Alert:
    if facts.may_operate:
        path = f"/operator/accounts/{facts.account.id}"
        return Alert("", "Add credits to start sending.", "Each recipient costs one.", path, "Add credits")
    text = "Each recipient costs one. Ask the operator of this service to add some."
    return Alert("", "You need credits to start sending.", text, "/credits", "See how")


def _webhook(facts: AlertFacts) -> Iterator[Alert]:
    """What the service disabled; and of the first one, the newest attempted delivery: older failures are resolved."""
    for webhook in facts.webhooks:
        if webhook.disabled_reason and not webhook.enabled:
            text = f"{endpoints.host(webhook.url)}: {webhook.disabled_reason} Enable it when your endpoint works again."
            yield Alert("bad", "A webhook was disabled.", text, "/webhooks", "See webhooks")
    tried = [entry for entry in facts.deliveries if entry.attempts]
    if not tried or tried[0].status == "succeeded":
        return
    code = tried[0].attempts[-1].status_code
    result = "could not be reached" if code is None else f"responded {code}"
    text = f"Your endpoint {result} at the last attempt."
    yield Alert("warn", "The webhook is failing.", text, "/webhook", "See deliveries")


def _days(number: int) -> str:
    return "1 day" if number == 1 else f"{number} days"
