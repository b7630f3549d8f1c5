"""Alerts of an account: what stops or delays its mail or soon will, each with what to do.

Pure: the facts come from services.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from postroad.dashboard.framework import navigation, verdicts
from postroad.model.delivery import providers
from postroad.model.search import search_values
from postroad.model.units import times
from postroad.services.accounts import account_registry as accounts
from postroad.services.messages import queue_inspection
from postroad.services.queue import wait_reasons
from postroad.services.webhooks import endpoints
from postroad.storage.mail import domains as stored_domains
from postroad.storage.mail import webhooks as mail_webhooks
from postroad.storage.operations import processes
from postroad.storage.people import accounts as stored_accounts

# Adding credits takes people time: warn when fewer days than this are left.
LOW_CREDIT_DAYS: Final = 3
QUEUED: Final = navigation.messages_url("status:queued")
# Upstreams and single hosts are not an account's concern; messages say why they wait.
_PAUSABLE: Final = {**providers.NAMES, providers.OTHERS: "all other providers"}
_REPORTED: Final = {"paused": "{} asked us to slow down", "blocked": "The mail servers of {} do not answer"}


class AlertFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The state of an account.

    `sender` is None if no domain may send; then `unverified` is one that is registered. `may_operate`: the reader can
    add credits. `used` are the providers that it has sent to since yesterday.
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
    domains: Sequence[stored_domains.Domain] = ()
    webhooks: Sequence[mail_webhooks.Webhook] = ()
    conditions: queue_inspection.Conditions = queue_inspection.Conditions({}, {})
    deferring: Sequence[verdicts.Deferring] = ()
    used: frozenset[str] = frozenset()


def alerts(facts: AlertFacts) -> Iterator[verdicts.Alert]:
    yield from pauses(facts.account.id, facts.conditions)
    yield from _providers(facts)
    yield from _guard(facts)
    yield from _domains(facts)
    yield from _credits(facts)
    yield from _webhooks(facts)


def pauses(account_id: str, conditions: queue_inspection.Conditions) -> Iterator[verdicts.Alert]:
    """What the operator holds or has paused."""
    for hold in conditions.holds.values():
        if hold.account_id in ("", account_id):
            title = f"Mail to {hold.domain} is held by the operator" if hold.domain else "Mail is held by the operator"
            yield _waiting("warn" if hold.domain else "bad", title, since=hold.held_at)
    for name, title in _PAUSABLE.items():
        status = conditions.statuses.get(name)
        if status is not None and _is_paused(status):
            yield _waiting("warn", f"Mail to {title} is paused by the operator", since=status.updated_at)


def _is_paused(status: processes.QueueStatus) -> bool:
    return status.state == wait_reasons.PAUSED_BY_OPERATOR


def _providers(facts: AlertFacts) -> Iterator[verdicts.Alert]:
    """At most one of each provider that is not paused: how much it defers, else what the delivery processes report."""
    deferring = {each.provider: each for each in facts.deferring}
    for name, title in _PAUSABLE.items():
        status = facts.conditions.statuses.get(name)
        if status is not None and _is_paused(status):
            continue
        if found := deferring.get(name):
            after = times.to_wire(found.since)[:16]
            path = navigation.messages_url(f"provider:{name} outcome:{search_values.RETRIED} after:{after}Z")
            yield verdicts.Alert(kind="warn", title=found.title, since=found.since, path=path, action="See why")
        elif status is not None and status.state in _REPORTED and name in facts.used:
            yield _waiting("warn", _REPORTED[status.state].format(title))


def _waiting(kind: verdicts.Kind, title: str, *, since: int | None = None) -> verdicts.Alert:
    return verdicts.Alert(
        kind=kind, title=title, since=since, text="It waits in the queue.", path=QUEUED, action="See what waits"
    )


def _guard(facts: AlertFacts) -> Iterator[verdicts.Alert]:
    """A warning. Every page says so when the account is suspended."""
    guard = facts.guard
    if guard.state == "warned":
        text = (
            f"{round(guard.bounce_percent, 2):g}% of addresses didn't exist and {round(guard.complaint_percent, 2):g}% "
            f"reported spam, out of {guard.recipients:,} in {_days(guard.days)}. At {guard.suspend_percent:g}% or "
            f"{guard.complaint_suspend_percent:g}% we suspend sending. Send only to people who opted in."
        )
        yield verdicts.Alert(
            kind="warn", title="Bounce guard warning", text=text, path="/suppressions", action="See suppressions"
        )


def _domains(facts: AlertFacts) -> Iterator[verdicts.Alert]:
    for domain in facts.domains:
        if domain.verified_at is not None and domain.failing_since is not None:
            yield verdicts.Alert(
                kind="warn",
                title=f"The DNS records of {domain.name} are gone",
                since=domain.failing_since,
                text="Restore them within 3 days, or you can no longer send from it.",
                path=f"/domains/{domain.id}",
                action="See the records",
            )
    # The page of those who have never sent says the same.
    if facts.sender is None and facts.has_sent:
        yield _no_sender(facts)


def _no_sender(facts: AlertFacts) -> verdicts.Alert:
    if facts.unverified is not None:
        return verdicts.Alert(
            kind="warn",
            title=f"{facts.unverified.name} is not verified",
            text="Add its DNS records; you can send once they are found.",
            path=f"/domains/{facts.unverified.id}",
            action="See the records",
        )
    if facts.can_send_unverified:
        title, text, action = "No domain", "You can only send from your own domain.", "Add a domain"
    else:
        title, action = "No verified domain", "Go to domains"
        text = "Add a domain and its DNS records; you can send once it is verified."
    return verdicts.Alert(kind="warn", title=title, text=text, path="/domains", action=action)


def _credits(facts: AlertFacts) -> Iterator[verdicts.Alert]:
    left = facts.account.available
    if not facts.needs_credits:
        return
    if not left and not facts.has_sent:
        yield _first_credits(facts)
    elif not left:
        text = "New messages are rejected."
        yield verdicts.Alert(kind="bad", title="No credits left", text=text, path="/credits", action="Add credits")
    elif left < facts.daily_recipients * LOW_CREDIT_DAYS:
        days = int(left / facts.daily_recipients)
        lasts = f"about {_days(days)}" if days else "less than a day"
        text = f"{left:,} left. At the current rate they last {lasts}."
        yield verdicts.Alert(
            kind="warn", title="Credits are running out", text=text, path="/credits", action="Add credits"
        )


def _first_credits(facts: AlertFacts) -> verdicts.Alert:
    if facts.may_operate:
        path = f"/operator/accounts/{facts.account.id}"
        title, text = "Add credits to start sending", "Each recipient costs one."
        return verdicts.Alert(kind="", title=title, text=text, path=path, action="Add credits")
    text = "Each recipient costs one. Ask the operator of this service to add some."
    title = "You need credits to start sending"
    return verdicts.Alert(kind="", title=title, text=text, path="/credits", action="See how")


def _webhooks(facts: AlertFacts) -> Iterator[verdicts.Alert]:
    """What the service disabled, and what has not accepted an event since one failed."""
    for webhook in facts.webhooks:
        host, path = endpoints.host(webhook.url), f"/webhooks/{webhook.id}"
        if webhook.disabled_reason and not webhook.enabled:
            text = f"{webhook.disabled_reason} Enable it when your endpoint works again."
            title = f"The webhook to {host} was disabled"
            yield verdicts.Alert(kind="bad", title=title, text=text, path=path, action="See the webhook")
        elif webhook.enabled and webhook.failing_since is not None:
            title = f"The webhook to {host} is failing"
            yield verdicts.Alert(
                kind="warn", title=title, since=webhook.failing_since, path=path, action="See deliveries"
            )


def _days(number: int) -> str:
    return "1 day" if number == 1 else f"{number} days"
