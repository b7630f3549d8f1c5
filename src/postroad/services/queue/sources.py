"""Source addresses, as operators see and change them: states, warm-up, attempts by provider; pauses of blocked ones."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from postroad import config, context, errors
from postroad.mail import notice_kinds, notice_outbox
from postroad.model.delivery import providers
from postroad.model.domains import warmup
from postroad.model.people import callers
from postroad.model.units import labels, times
from postroad.services import audit_log
from postroad.services.queue import wait_reasons
from postroad.storage.engine import store
from postroad.storage.mail import delivery_controls, mail_counts, queue
from postroad.storage.mail.delivery_controls import SourceStatus

# Attempts of today and of these days before are shown. A warm-up counts from its beginning.
SHOWN_DAYS: Final = 7
ACTIVE: Final = "active"


class ProviderView(msgspec.Struct, frozen=True):
    """A source address towards one provider: attempts of the last days, a pause, and its warm-up, if any."""

    provider: str
    counts: mail_counts.SourceCount
    pause: delivery_controls.SourceState | None
    calendar: Sequence[warmup.Day]


class SourceView(msgspec.Struct, frozen=True):
    """A source address of the settings, and what holds for it."""

    source: config.Source
    states: Sequence[delivery_controls.SourceState]
    providers: Sequence[ProviderView]

    @property
    def state(self) -> str:
        """The state that decides."""
        known = {state.state for state in self.states if not state.provider}
        return next((state.value for state in SourceStatus if state in known), ACTIVE)


async def listed(ctx: context.Context) -> list[SourceView]:
    now = ctx.clock()
    async with ctx.store.reading() as tx:
        states = delivery_controls.source_states_in_force(await delivery_controls.listed_source_states(tx), now=now)
        warm_ups = [times.day_of(state.set_at) for state in states if state.state == SourceStatus.WARMING]
        counts = await mail_counts.sources_since(tx, min([times.day_of(now) - SHOWN_DAYS, *warm_ups]))
    return [_view(ctx, source, states, counts, now=now) for source in ctx.settings.sources]


async def find(ctx: context.Context, name: str) -> SourceView:
    name = _checked(ctx, name)
    return next(view for view in await listed(ctx) if view.source.name == name)


async def pause(ctx: context.Context, name: str, *, provider: str = "", reason: str, until: int | None) -> SourceView:
    """Send nothing from an address, or nothing to one provider, until it is resumed, or until a time."""
    return await _set(ctx, name, SourceStatus.PAUSED, provider=provider, reason=reason, until=until)


async def drain(ctx: context.Context, name: str, *, reason: str) -> SourceView:
    """Claim nothing more for an address; what was claimed is sent."""
    return await _set(ctx, name, SourceStatus.DRAINING, reason=reason)


async def warm_up(ctx: context.Context, name: str) -> SourceView:
    """Begin the warm-up of an address, with the first day of the schedule."""
    return await _set(ctx, name, SourceStatus.WARMING)


async def resume(ctx: context.Context, name: str, *, provider: str = "") -> SourceView:
    """Send again from an address that is paused or draining; a warm-up goes on."""
    return await _end(ctx, name, (SourceStatus.PAUSED, SourceStatus.DRAINING), provider=provider)


async def end_warm_up(ctx: context.Context, name: str) -> SourceView:
    """Send from an address without the limits of the warm-up."""
    return await _end(ctx, name, (SourceStatus.WARMING,))


def warmup_state(
    counts: Iterable[mail_counts.SourceCount],
    *,
    source: str,
    provider: str,
    since: int,
    now: int,
    caps: Sequence[int],
) -> warmup.State:
    """Where a warm-up that has begun at a time is, by the attempts of its days, which are in order."""
    state: warmup.State | None = None
    for count in counts:
        if (count.source, count.provider) == (source, provider) and count.day >= times.day_of(since):
            state = warmup.use(warmup.on_day(state, day=count.day, caps=caps), count.attempts)
    return warmup.at(state, now=now, caps=caps)


def pool_of(settings: config.Settings, queue_key: str, provider: str | None) -> str:
    """The pool of a scheduled queue, as far as it is known without the provider of its domain."""
    _, account_id, sender_domain, tag = queue.parts_of(queue_key)
    chosen = providers.choose_route(
        settings.route_rules, account_id=account_id, sender_domain=sender_domain, tag=tag, provider=provider
    )
    return chosen.pool if chosen is not None else providers.DEFAULT_POOL


def stopped(
    settings: config.Settings, states: Sequence[delivery_controls.SourceState], *, pool: str, provider: str
) -> delivery_controls.SourceState | None:
    """What stops the last address of a pool, if no one of them may send to a provider."""
    by_source: dict[str, delivery_controls.SourceState] = {
        state.source: state
        for state in states
        if state.state != SourceStatus.WARMING and state.provider in {"", provider}
    }
    names = [source.name for source in settings.sources if source.pool == pool]
    if not names or any(name not in by_source for name in names):
        return None
    return min((by_source[name] for name in names), key=lambda state: state.until or state.set_at + times.DAY * 10_000)


def _view(
    ctx: context.Context,
    source: config.Source,
    states: Sequence[delivery_controls.SourceState],
    counts: Sequence[mail_counts.SourceCount],
    *,
    now: int,
) -> SourceView:
    own = [state for state in states if state.source == source.name]
    pauses = {state.provider: state for state in own if state.provider and state.state == SourceStatus.PAUSED}
    began = next((state.set_at for state in own if state.state == SourceStatus.WARMING), None)
    caps = ctx.settings.warmup.source_recipients_per_day
    upstreams = [upstream.provider_queue for upstream in ctx.settings.upstreams]
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
    counts: Iterable[mail_counts.SourceCount], source: str, provider: str, *, since_day: int
) -> mail_counts.SourceCount:
    found = [
        count for count in counts if (count.source, count.provider) == (source, provider) and count.day >= since_day
    ]
    numbers: Mapping[str, int] = {
        name: sum(getattr(count, name) for count in found) for name in ("delivered", "deferred", "refused", "blocked")
    }
    return mail_counts.SourceCount(source, provider, since_day, **numbers)


async def _set(
    ctx: context.Context,
    name: str,
    state: SourceStatus,
    *,
    provider: str = "",
    reason: str = "",
    until: int | None = None,
) -> SourceView:
    name = _checked(ctx, name)
    _check_provider(ctx, provider)
    if state is not SourceStatus.WARMING:
        labels.check_label("reason", reason, limit=labels.REASON_CHARACTERS)
    now = ctx.clock()
    if until is not None and until <= now:
        raise errors.InvalidRequest("until: must be in the future")
    who = ctx.actor.user_id or (ctx.actor.who.key.id if ctx.actor.who and ctx.actor.who.key else ctx.actor.kind.value)
    row = delivery_controls.SourceState(name, provider, state, reason, who, now, until)
    async with ctx.store.transaction() as tx:
        await put(ctx, tx, row)
    ctx.mail_wakeup.set()
    return await find(ctx, name)


async def put(ctx: context.Context, tx: store.Transaction, row: delivery_controls.SourceState) -> None:
    """Store a state, with its entry of the audit log."""
    await delivery_controls.sweep_source_states(tx, before=row.set_at)
    await delivery_controls.put_source_state(tx, row)
    subject = f"{row.source} to {row.provider}" if row.provider else row.source
    await audit_log.write(ctx, tx, audit_log.INSTALLATION, f"source.{row.state}", subject, row.reason)


async def _end(ctx: context.Context, name: str, states: Sequence[SourceStatus], *, provider: str = "") -> SourceView:
    name = _checked(ctx, name)
    _check_provider(ctx, provider)
    action = "source.warm" if SourceStatus.WARMING in states else "source.resumed"
    async with ctx.store.transaction() as tx:
        if not await delivery_controls.remove_source_state(tx, name, provider, states):
            raise errors.Conflict(f"{name} is not {' or '.join(states)}{f' for {provider}' if provider else ''}")
        subject = f"{name} to {provider}" if provider else name
        await audit_log.write(ctx, tx, audit_log.INSTALLATION, action, subject)
    ctx.mail_wakeup.set()
    return await find(ctx, name)


def _checked(ctx: context.Context, name: str) -> str:
    names = [source.name for source in ctx.settings.sources]
    if name not in names:
        raise errors.NotFound(f"no such source address; there are: {', '.join(names) or 'none'}")
    return name


def _check_provider(ctx: context.Context, provider: str) -> None:
    known = [*providers.PROVIDERS, *(upstream.provider_queue for upstream in ctx.settings.upstreams)]
    if provider and provider not in known:
        raise errors.InvalidRequest(f"provider: must be one of {', '.join(known)}")


# Pauses of source addresses that others block, with a notice to the operators, and for a limited time.
#
# A provider blocks an address by its replies: the address is paused for that provider. A blocklist that names an
# address concerns all mail, so the address is paused as a whole, unless it is the last one of its pool that may send: a
# list, which may be wrong, must not stop all mail. A pause is repeated as long as the cause lasts.

# Then the provider is asked again, by sending: most blocks that end by themselves do so within hours.
BLOCKED: Final = 2 * times.HOUR
# Longer than the interval of the checks, so that the pause goes on while the address is listed.
LISTED: Final = 3 * times.HOUR


async def pause_blocked(ctx: context.Context, source: str, provider: str, reply: str) -> None:
    """Pause an address for a provider that refuses it."""
    ctx = dataclasses.replace(ctx, actor=callers.SERVICE)
    now = ctx.clock()
    name, said = providers.NAMES[provider], wait_reasons.shortened(reply)
    reason = f"{name} blocks it: {said}"[: labels.REASON_CHARACTERS]
    row = delivery_controls.SourceState(source, provider, SourceStatus.PAUSED, reason, "", now, now + BLOCKED)
    async with ctx.store.transaction() as tx:
        await put(ctx, tx, row)
        await _tell(
            ctx, tx, row, {"provider": name, "blocklist": "", "reply": said, "until": times.to_wire(now + BLOCKED)}
        )
    ctx.mail_wakeup.set()


async def pause_listed(ctx: context.Context, listed: Mapping[str, str]) -> None:
    """Pause the source addresses that blocklists name, by address; those that are paused stay so."""
    ctx = dataclasses.replace(ctx, actor=callers.SERVICE)
    now = ctx.clock()
    for source in ctx.settings.sources:
        blocklist = listed.get(source.address)
        if blocklist is None:
            continue
        async with ctx.store.transaction() as tx:
            states = delivery_controls.source_states_in_force(await delivery_controls.listed_source_states(tx), now=now)
            idle = {state.source for state in states if not state.provider and state.state != SourceStatus.WARMING}
            by_service = {
                state.source
                for state in states
                if not state.provider and state.state == SourceStatus.PAUSED and not state.set_by
            }
            others = [
                other.name for other in ctx.settings.sources if other.pool == source.pool and other.name != source.name
            ]
            row = delivery_controls.SourceState(
                source.name, "", SourceStatus.PAUSED, f"listed by {blocklist}", "", now, now + LISTED
            )
            if source.name in idle - by_service:
                continue  # by an operator, who knows why and how long
            is_paused = source.name in by_service or bool(set(others) - idle)
            if source.name in by_service:
                await delivery_controls.put_source_state(tx, row)
            elif is_paused:
                await put(ctx, tx, row)
            until = times.to_wire(now + LISTED) if is_paused else ""
            await _tell(ctx, tx, row, {"blocklist": blocklist, "until": until})
        ctx.mail_wakeup.set()


async def _tell(
    ctx: context.Context, tx: store.Transaction, row: delivery_controls.SourceState, values: Mapping[str, str]
) -> None:
    """Tell the operators; each provider and each blocklist is a subject of its own."""
    subject = f"{row.source} {values['blocklist'] or values['provider']}"
    told = notice_outbox.NewNotice(
        kind=notice_kinds.ADDRESS_BLOCKED, subject=subject, values={"source": row.source, **values}
    )
    await notice_outbox.write(tx, [told], now=ctx.clock(), entropy=ctx.entropy)
