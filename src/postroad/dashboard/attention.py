"""What needs somebody's attention: the few things that stop mail, or soon will, each with what to do about it.

Pure: the facts come from services. What is in order is not mentioned, so most days there is nothing here.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from postroad.model import times
from postroad.services.accounts import registry as accounts
from postroad.services.webhooks import delivery_log
from postroad.storage import accounts as stored_accounts

# Somebody has to order credits and somebody to add them: less than this is soon.
LOW_CREDIT_DAYS: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertFacts:
    """How an account stands. `sender` is None when no domain of it may send; `pace` is recipients a day."""

    account: stored_accounts.Account
    guard: accounts.Sending
    cooldown_hours: int
    sender: str | None
    daily_recipients: float
    told: Sequence[delivery_log.Entry]


@dataclass(frozen=True, slots=True)
class Alert:
    """Something to look at, and the page to do it on."""

    kind: Literal["bad", "warn"]
    title: str
    text: str
    path: str
    action: str


def matters(facts: AlertFacts) -> list[Alert]:
    """Everything that is not in order, the gravest first."""
    found = [*_guard(facts), *_domain(facts), *_credits(facts), *_webhook(facts)]
    return sorted(found, key=lambda alert: alert.kind != "bad")


def _guard(facts: AlertFacts) -> Iterator[Alert]:
    guard = facts.guard
    if guard.state == "suspended":
        yield Alert(
            "bad", "The bounce guard has stopped this account.", _resume_hint(facts), "/messages", "See its mail"
        )
    elif guard.state == "warned":
        text = (
            f"Of {guard.recipients:,} recipients of {_days(guard.days)}, {guard.bounce_percent:g} % had no mailbox and "
            f"{guard.complaint_percent:g} % complained. At {guard.suspend_percent:g} % or "
            f"{guard.complaint_suspend_percent:g} % sending stops. Write only to people who asked for it."
        )
        yield Alert("warn", "The bounce guard warns this account.", text, "/suppressions", "See who was suppressed")


def _resume_hint(facts: AlertFacts) -> str:
    suspended_at = facts.account.suspended_at
    if not facts.cooldown_hours or suspended_at is None:
        return "Whoever runs this service can let it send again."
    until = times.to_wire(suspended_at + facts.cooldown_hours * times.HOUR)
    return f"It may send again from {until[:10]} {until[11:16]} UTC on. Take bad addresses off your lists until then."


def _domain(facts: AlertFacts) -> Iterator[Alert]:
    if facts.sender is None:
        text = "Add a domain and its DNS records; mail can leave as soon as it is verified."
        yield Alert("warn", "No domain of this account may send yet.", text, "/domains", "Go to domains")


def _credits(facts: AlertFacts) -> Iterator[Alert]:
    left = facts.account.available
    if not left:
        yield Alert("bad", "There are no credits left.", "New messages are refused.", "/credits", "Get more")
    elif left < facts.daily_recipients * LOW_CREDIT_DAYS:
        days = int(left / facts.daily_recipients)
        lasts = f"for {_days(days)} or so" if days else "for less than a day"
        text = f"{left:,} are left. At the pace of this period they last {lasts}."
        yield Alert("warn", "Credits are running out.", text, "/credits", "Get more")


def _webhook(facts: AlertFacts) -> Iterator[Alert]:
    """The newest attempt decides: what failed before it has been mended since."""
    tried = [entry for entry in facts.told if entry.attempts]
    if not tried or tried[0].status == "succeeded":
        return
    code = tried[0].attempts[-1].status_code
    said = "could not be reached" if code is None else f"answered with {code}"
    text = f"Your receiver {said} when it was last told something."
    yield Alert("warn", "The webhook does not work.", text, "/webhook", "See its log")


def _days(number: int) -> str:
    return "1 day" if number == 1 else f"{number} days"
