"""Alerts of the installation: what stops or delays mail of any account, each with its page.

Pure: the facts come from services.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from postroad.dashboard.framework import site, verdicts
from postroad.dashboard.operator import accounts, providers, queue, sources
from postroad.model.delivery import providers as provider_names
from postroad.model.units import times
from postroad.services.operations import destinations
from postroad.services.operations.checks import findings, table
from postroad.services.operations.notices import watch
from postroad.services.queue import holds as queue_holds
from postroad.services.queue import sources as queue_sources
from postroad.storage.mail import delivery_controls, queue_views
from postroad.storage.operations import processes as stored_processes

HEALTH: Final = "/operator"
# The page has all of them.
MAX_NAMED: Final = 3
_LEVELS: Final[Mapping[findings.State, tuple[verdicts.Kind, str]]] = {
    findings.State.ERROR: ("bad", "failed"),
    findings.State.WARNING: ("warn", "warned"),
}
_REPORTED: Final = {"paused": "{} asked us to slow down", "blocked": "{} does not answer"}


class AlertFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The state of the installation.

    `names` are those of accounts, `suspended` those of suspended ones, one more than are named at most; `silent`
    processes do not report any more.
    """

    now: int
    checks: Sequence[table.Result] = ()
    silent: Sequence[stored_processes.Process] = ()
    holds: Sequence[delivery_controls.Hold] = ()
    names: Mapping[str, str] = {}
    suspended: Sequence[str] = ()
    provider_queues: Sequence[destinations.Destination] = ()
    deferring: Sequence[verdicts.Deferring] = ()
    addresses: Sequence[queue_sources.SourceView] = ()
    totals: Sequence[queue_views.Total] = ()


def alerts(facts: AlertFacts) -> Iterator[verdicts.Alert]:
    yield from _checks(facts)
    yield from _processes(facts)
    yield from _held(facts)
    yield from _providers(facts)
    yield from _sources(facts)
    yield from _backlog(facts)
    yield from _suspended(facts)


def _checks(facts: AlertFacts) -> Iterator[verdicts.Alert]:
    for state, (kind, words) in _LEVELS.items():
        found = [site.humanize(result.name) for result in facts.checks if result.state is state]
        if found:
            count = "1 check" if len(found) == 1 else f"{len(found)} checks"
            yield verdicts.Alert(
                kind=kind,
                title=f"{count} {words}",
                text=_named(found),
                path=f"{HEALTH}#checks",
                action="See what to do",
            )


def _processes(facts: AlertFacts) -> Iterator[verdicts.Alert]:
    for process in facts.silent:
        title = f"{process.name} has been silent"
        yield verdicts.Alert(
            kind="bad", title=title, since=process.seen_at, path=f"{HEALTH}#processes", action="See processes"
        )


def _held(facts: AlertFacts) -> Iterator[verdicts.Alert]:
    for hold in facts.holds:
        named = msgspec.structs.replace(hold, account_id=facts.names.get(hold.account_id, hold.account_id))
        scope = queue_holds.scope(named)
        yield verdicts.Alert(
            kind="warn" if hold.account_id or hold.domain else "bad",
            title=f"{scope[:1].upper()}{scope[1:]} is held",
            since=hold.held_at,
            text=hold.reason,
            path=f"{queue.PATH}#holds",
            action="See holds",
        )


def _providers(facts: AlertFacts) -> Iterator[verdicts.Alert]:
    """Of each provider a pause; else changed limits, and how much it defers or what the delivery processes report."""
    deferring = {each.provider: each for each in facts.deferring}
    for each in facts.provider_queues:
        path, title = providers.url_of(each.name), provider_names.title_of(each.name)
        override = each.override
        # Single hosts do not answer now and then; a pause of all others is one alert.
        is_shared = each.name in provider_names.NAMES or each.name.startswith(provider_names.UPSTREAM_PREFIX)
        if each.is_paused and override is not None and override.name == each.name:
            yield verdicts.Alert(
                kind="warn",
                title=f"{title} is paused",
                since=override.set_at,
                text=override.pause_reason,
                path=path,
                action="See the pause",
            )
            continue
        if override is not None and override.name == each.name and override.has_limits:
            yield verdicts.Alert(
                kind="",
                title=f"The limits of {title} are changed",
                since=override.set_at,
                text=override.limits_reason,
                path=path,
                action="See the limits",
            )
        if found := deferring.get(each.name):
            yield verdicts.Alert(kind="warn", title=found.title, since=found.since, path=path, action="See why")
        elif is_shared and each.state in _REPORTED:
            title = _REPORTED[each.state].format(title)
            yield verdicts.Alert(kind="warn", title=title, path=path, action="See why")


def _sources(facts: AlertFacts) -> Iterator[verdicts.Alert]:
    for view in facts.addresses:
        for state in view.states:
            if state.state == delivery_controls.SourceStatus.PAUSED:
                provider = f" for {provider_names.title_of(state.provider)}" if state.provider else ""
                yield verdicts.Alert(
                    kind="warn",
                    title=f"The address {view.source.name} is paused{provider}",
                    since=state.set_at,
                    text=state.reason,
                    path=sources.url_of(view.source.name),
                    action="See the address",
                )


def _backlog(facts: AlertFacts) -> Iterator[verdicts.Alert]:
    """Mail that is due and not tried for as long as operators get a notice of."""
    ready = [total for total in facts.totals if total.state == queue_views.READY]
    since = min((total.due_at for total in ready), default=facts.now)
    if facts.now - since >= watch.QUEUE_DELAY_MINUTES * 60 * times.SECOND:
        count = sum(total.recipients for total in ready)
        title = f"{count:,} {'recipient is' if count == 1 else 'recipients are'} due but not being tried"
        yield verdicts.Alert(kind="bad", title=title, since=since, path=queue.PATH, action="See the queue")


def _suspended(facts: AlertFacts) -> Iterator[verdicts.Alert]:
    if facts.suspended:
        title = "An account is suspended" if len(facts.suspended) == 1 else "Accounts are suspended"
        path = f"{accounts.PATH}?state=suspended"
        yield verdicts.Alert(kind="", title=title, text=_named(facts.suspended), path=path, action="See accounts")


def _named(names: Sequence[str]) -> str:
    return ", ".join([*names[:MAX_NAMED], *(["…"] if len(names) > MAX_NAMED else [])])
