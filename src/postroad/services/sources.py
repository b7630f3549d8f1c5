"""Source addresses, as operators see and change them: states, warm-up, and attempts by provider.

A state is a row of the store, so it lasts over restarts and applies on every host within a poll of its delivery engine.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from postroad import config, errors
from postroad.model import labels, providers, route_rules, times, warmup
from postroad.services import audit_log, context
from postroad.storage import queue, source_counts, source_states, store
from postroad.storage.source_states import State

# Attempts of today and of these days before are shown. A warm-up counts from its beginning.
SHOWN_DAYS: Final = 7
ACTIVE: Final = "active"


class ProviderView(msgspec.Struct, frozen=True):
    """A source address towards one provider: attempts of the last days, a pause, and its warm-up, if any."""

    provider: str
    counts: source_counts.SourceCount
    pause: source_states.SourceState | None
    calendar: Sequence[warmup.Day]


class SourceView(msgspec.Struct, frozen=True):
    """A source address of the settings, and what holds for it."""

    source: config.Source
    states: Sequence[source_states.SourceState]
    providers: Sequence[ProviderView]

    @property
    def state(self) -> str:
        """The state that decides."""
        known = {one.state for one in self.states if not one.provider}
        return next((state.value for state in State if state in known), ACTIVE)


async def listed(ctx: context.Context) -> list[SourceView]:
    """The source addresses of the settings."""
    now = ctx.clock()
    async with ctx.store.reading() as tx:
        states = source_states.in_force(await source_states.listed(tx), now=now)
        counts = await source_counts.since(tx, _first_day(states, now=now))
    return [_view(ctx, one, states, counts, now=now) for one in ctx.settings.sources]


async def find(ctx: context.Context, name: str) -> SourceView:
    """One source address."""
    name = _checked(ctx, name)
    return next(one for one in await listed(ctx) if one.source.name == name)


async def pause(ctx: context.Context, name: str, *, provider: str = "", reason: str, until: int | None) -> SourceView:
    """Send nothing from an address, or nothing to one provider, until it is resumed, or until a time."""
    return await _set(ctx, name, State.PAUSED, provider=provider, reason=reason, until=until)


async def drain(ctx: context.Context, name: str, *, reason: str) -> SourceView:
    """Claim nothing more for an address; what was claimed is sent."""
    return await _set(ctx, name, State.DRAINING, reason=reason)


async def warm_up(ctx: context.Context, name: str) -> SourceView:
    """Begin the warm-up of an address, with the first day of the schedule."""
    return await _set(ctx, name, State.WARMING)


async def resume(ctx: context.Context, name: str, *, provider: str = "") -> SourceView:
    """Send again from an address that is paused or draining; a warm-up goes on."""
    return await _end(ctx, name, (State.PAUSED, State.DRAINING), provider=provider)


async def end_warm_up(ctx: context.Context, name: str) -> SourceView:
    """Send from an address without the limits of the warm-up."""
    return await _end(ctx, name, (State.WARMING,))


def warmup_state(
    counts: Iterable[source_counts.SourceCount],
    *,
    source: str,
    provider: str,
    since: int,
    now: int,
    caps: Sequence[int],
) -> warmup.State:
    """Where a warm-up that has begun at a time is, by the attempts of its days, which are in order."""
    state: warmup.State | None = None
    for one in counts:
        if (one.source, one.provider) == (source, provider) and one.day >= times.day_of(since):
            state = warmup.use(warmup.on_day(state, day=one.day, caps=caps), one.attempts)
    return warmup.at(state, now=now, caps=caps)


def pool_of(settings: config.Settings, queue_key: str, provider: str | None) -> str:
    """The pool of a scheduled queue, as far as it is known without the provider of its domain."""
    _, account_id, sender_domain, tag = queue.parts_of(queue_key)
    chosen = route_rules.choose(
        settings.route_rules, account_id=account_id, sender_domain=sender_domain, tag=tag, provider=provider
    )
    return chosen.pool if chosen is not None else route_rules.DEFAULT_POOL


def stopped(
    settings: config.Settings, states: Sequence[source_states.SourceState], *, pool: str, provider: str
) -> source_states.SourceState | None:
    """What stops the last address of a pool, if no one of them may send to a provider."""
    by_source: dict[str, source_states.SourceState] = {
        one.source: one for one in states if one.state != State.WARMING and one.provider in {"", provider}
    }
    names = [one.name for one in settings.sources if one.pool == pool]
    if not names or any(name not in by_source for name in names):
        return None
    return min((by_source[name] for name in names), key=lambda one: one.until or one.set_at + times.DAY * 10_000)


def _view(
    ctx: context.Context,
    source: config.Source,
    states: Sequence[source_states.SourceState],
    counts: Sequence[source_counts.SourceCount],
    *,
    now: int,
) -> SourceView:
    own = [one for one in states if one.source == source.name]
    pauses = {one.provider: one for one in own if one.provider and one.state == State.PAUSED}
    began = next((one.set_at for one in own if one.state == State.WARMING), None)
    caps = ctx.settings.warmup.source_recipients_per_day
    upstreams = [one.provider_queue for one in ctx.settings.upstreams]
    shown = [
        ProviderView(
            provider,
            _total(counts, source.name, provider, since_day=times.day_of(now) - SHOWN_DAYS),
            pauses.get(provider),
            []
            if began is None or provider in upstreams
            else warmup.calendar(
                warmup_state(counts, source=source.name, provider=provider, since=began, now=now, caps=caps), caps
            ),
        )
        for provider in (*providers.PROVIDERS, *upstreams)
    ]
    return SourceView(source, own, shown)


def _total(
    counts: Iterable[source_counts.SourceCount], source: str, provider: str, *, since_day: int
) -> source_counts.SourceCount:
    found = [one for one in counts if (one.source, one.provider) == (source, provider) and one.day >= since_day]
    numbers: Mapping[str, int] = {
        name: sum(getattr(one, name) for one in found) for name in ("delivered", "deferred", "refused", "blocked")
    }
    return source_counts.SourceCount(source, provider, since_day, **numbers)


def _first_day(states: Iterable[source_states.SourceState], *, now: int) -> int:
    warm_ups = [times.day_of(one.set_at) for one in states if one.state == State.WARMING]
    return min([times.day_of(now) - SHOWN_DAYS, *warm_ups])


async def _set(
    ctx: context.Context, name: str, state: State, *, provider: str = "", reason: str = "", until: int | None = None
) -> SourceView:
    name = _checked(ctx, name)
    _check_provider(ctx, provider)
    if state is not State.WARMING:
        labels.check("reason", reason, limit=labels.REASON_CHARACTERS)
    now = ctx.clock()
    if until is not None and until <= now:
        raise errors.InvalidRequest("until: must be in the future")
    who = ctx.actor.user_id or (ctx.actor.who.key.id if ctx.actor.who and ctx.actor.who.key else ctx.actor.kind.value)
    row = source_states.SourceState(name, provider, state, reason, who, now, until)
    async with ctx.store.transaction() as tx:
        await put(ctx, tx, row)
    ctx.mail_wakeup.set()
    return await find(ctx, name)


async def put(ctx: context.Context, tx: store.Transaction, row: source_states.SourceState) -> None:
    """Store a state, with its entry of the audit log."""
    await source_states.sweep(tx, before=row.set_at)
    await source_states.put(tx, row)
    subject = f"{row.source} to {row.provider}" if row.provider else row.source
    await audit_log.write(ctx, tx, audit_log.INSTALLATION, f"source.{row.state}", subject, row.reason)


async def _end(ctx: context.Context, name: str, states: Sequence[State], *, provider: str = "") -> SourceView:
    name = _checked(ctx, name)
    _check_provider(ctx, provider)
    action = "source.warm" if State.WARMING in states else "source.resumed"
    async with ctx.store.transaction() as tx:
        if not await source_states.remove(tx, name, provider, states):
            raise errors.Conflict(f"{name} is not {' or '.join(states)}{f' for {provider}' if provider else ''}")
        subject = f"{name} to {provider}" if provider else name
        await audit_log.write(ctx, tx, audit_log.INSTALLATION, action, subject)
    ctx.mail_wakeup.set()
    return await find(ctx, name)


def _checked(ctx: context.Context, name: str) -> str:
    names = [one.name for one in ctx.settings.sources]
    if name not in names:
        raise errors.NotFound(f"no such source address; there are: {', '.join(names) or 'none'}")
    return name


def _check_provider(ctx: context.Context, provider: str) -> None:
    known = [*providers.PROVIDERS, *(one.provider_queue for one in ctx.settings.upstreams)]
    if provider and provider not in known:
        raise errors.InvalidRequest(f"provider: must be one of {', '.join(known)}")
