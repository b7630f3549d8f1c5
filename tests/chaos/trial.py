"""One trial: a store, processes on it, customers who send, injected faults, and the reconciliation after them.

    outcome = await trial.run(trial.Plan(...), folder, url)

Everything that chance decides follows from the seed, except when the machine does what: the same seed does the same to
another interleaving.
"""

import asyncio
import contextlib
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from postroad import context, errors
from tests.chaos import (
    boundaries,
    customers,
    failovers,
    fault_injection,
    flaky_host,
    hosts,
    load,
    networks,
    reconciliation,
)
from tests.chaos import snapshot as chaos_snapshot
from tests.reliability import delivery_harness, sinks, webhook_processes

LISTENER_ROLES: Final = ("api", "submission")
LAYOUTS: Final[Mapping[str, Mapping[str, Sequence[str]]]] = {
    "one process": {"all": (*LISTENER_ROLES, "maintenance", "delivery", "webhooks")},
    "two processes": {"listeners": (*LISTENER_ROLES, "maintenance"), "engines": ("delivery", "webhooks")},
    "three processes": {
        "listeners": (*LISTENER_ROLES, "maintenance"),
        "delivery": ("delivery",),
        "webhooks": ("webhooks",),
    },
    "three hosts": {
        "1-listeners": (*LISTENER_ROLES, "maintenance"),
        "1-delivery": ("delivery",),
        "1-webhooks": ("webhooks",),
        "2-listeners": LISTENER_ROLES,
        "2-delivery": ("delivery",),
        "3-delivery": ("delivery",),
        "3-webhooks": ("webhooks",),
    },
}
# Enough for what the mail host defers, and for what it drops.
RETRY_SECONDS: Final = [1] * 12
WEBHOOK_RETRY_SECONDS: Final = [1] * 6
# A lease of ten seconds, some retries, and a breaker that opened: thirty seconds.
SETTLE_SECONDS: Final = 900.0
POLL_SECONDS: Final = 0.1
# Of each check: more would say the same.
MAX_TRACES: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What happens."""

    layout: str
    seed: int
    kills: int
    # For short runs: these boundaries and no others, and each is waited for; None is a kill at any moment.
    orders: Sequence[boundaries.Order | None] = ()
    minutes: float = 30.0
    http_senders: int = 4
    smtp_senders: int = 3
    customers: int = 2
    pause_seconds: float = 0.2
    # Let the leases of the dead end at once, when nobody is at work any more; else time passes as it does.
    hurries: bool = False
    disturbances: Sequence[fault_injection.Disturbance] = ()
    network: networks.Network | None = None
    servers: failovers.Failovers | None = None
    tell: Callable[[str], None] = lambda _text: None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What happened, what everybody knows, and what does not fit."""

    plan: Plan
    kills: Counter[tuple[str, str]]
    # The kills of a writer whose frontends had to end by themselves, and how long the slowest of these took.
    writers: int
    orphaned_seconds: float
    disturbed: Counter[str]
    outages: Sequence[failovers.Outage]
    snapshot: chaos_snapshot.Snapshot
    checked: Sequence[reconciliation.Checked]
    traces: Sequence[str]
    seconds: float


def tables(host: flaky_host.Host) -> dict[str, dict[str, object]]:
    """Settings of every process: all mail to one host, endpoints on loopback, the shortest leases there are."""
    sink = sinks.Sink("127.0.0.1", host.port)
    return {
        **webhook_processes.sections(retry_seconds=WEBHOOK_RETRY_SECONDS),
        **delivery_harness.sections(sink, retry_seconds=RETRY_SECONDS),
        "submission": {"listen": "127.0.0.1:0", "auth_without_tls": True},
        "bounce_guard": {"enabled": False},
    }


async def run(plan: Plan, folder: Path, url: str) -> Outcome:
    """The whole of it."""
    began = asyncio.get_running_loop().time()
    chance = random.Random(plan.seed)
    async with (
        flaky_host.running(random.Random(chance.random())) as host,
        delivery_harness.open_context(url, tables(host)) as ctx,
        customers.open_customers(ctx, plan.customers, chance) as opened,
        _started(folder, url, plan, tables(host)) as processes,
    ):
        listeners = [one for one in processes if "api" in one.roles]
        sent = load.Load(listeners, opened, random.Random(chance.random()), plan.pause_seconds)
        killer = fault_injection.FaultInjector(processes, sent, chance, plan.disturbances)
        async with load.sending(sent, http=plan.http_senders, smtp=plan.smtp_senders):
            await _inject_faults(plan, killer)
        plan.tell("the load is over")
        await _settle(plan, ctx, processes)
        known = chaos_snapshot.seen(sent, host, schedule=RETRY_SECONDS, webhook_schedule=WEBHOOK_RETRY_SECONDS)
        seen = await _look(ctx, processes, known)
    checked = reconciliation.reconcile(seen)
    seconds = asyncio.get_running_loop().time() - began
    return Outcome(
        plan,
        killer.kills,
        killer.writers,
        max(process.orphaned_seconds for process in processes),
        killer.disturbed,
        failovers.outages(plan.servers.times if plan.servers else (), sent.accepted_at),
        seen,
        checked,
        _traces(seen, checked, processes),
        seconds,
    )


async def _inject_faults(plan: Plan, killer: fault_injection.FaultInjector) -> None:
    for order in plan.orders:
        await killer.strike(order, seconds=hosts.TIMEOUT_SECONDS)
    if plan.orders or not plan.kills:
        await killer.disturb()
    else:
        until = asyncio.get_running_loop().time() + plan.minutes * 60
        await killer.kill(plan.kills, until=until, tell=plan.tell)


@contextlib.asynccontextmanager
async def _started(
    folder: Path, url: str, plan: Plan, settings: Mapping[str, Mapping[str, object]]
) -> AsyncIterator[Sequence[hosts.Host]]:
    processes = [
        hosts.Host.make(folder, url, name=name, roles=roles, tables=settings)
        for name, roles in LAYOUTS[plan.layout].items()
    ]
    try:
        await asyncio.gather(*(process.start() for process in processes))
        yield processes
    finally:
        for process in processes:
            process.abandon()


async def _settle(plan: Plan, ctx: context.Context, processes: Sequence[hosts.Host]) -> None:
    """Until all mail is final and all events are delivered, within a bound; then everybody is asked to stop."""
    if plan.hurries:
        await asyncio.gather(*(process.stop() for process in processes))
        async with ctx.store.transaction() as tx:
            await tx.run_script("UPDATE queue SET due_at = 0 WHERE ready = 0")
            await webhook_processes.let_time_pass(tx)
        await asyncio.gather(*(process.start() for process in processes))
    with contextlib.suppress(TimeoutError):  # the reconciliation finds what is not final
        async with asyncio.timeout(SETTLE_SECONDS):
            while all(process.is_alive for process in processes) and await _unfinished(ctx):
                await asyncio.sleep(POLL_SECONDS)
    await asyncio.gather(*(process.stop() for process in processes))


async def _unfinished(ctx: context.Context) -> bool:
    try:
        return await chaos_snapshot.unfinished(ctx) > 0
    except errors.ServiceUnavailable:  # a connection that was cut together with the others'
        return True


async def _look(
    ctx: context.Context, processes: Sequence[hosts.Host], seen: chaos_snapshot.Snapshot
) -> chaos_snapshot.Snapshot:
    code, printed = await processes[0].command("verify")
    seen.inconsistencies = [str(finding) for finding in printed["findings"]] + (
        [] if code == 0 else [f"postroad verify ended with {code}"]
    )
    for kind, rows in (await chaos_snapshot.ask(ctx)).items():
        setattr(seen, chaos_snapshot.FIELDS[kind], rows)
    seen.taken_over = chaos_snapshot.taken_over(processes)
    seen.errors = chaos_snapshot.errors(processes)
    seen.ended_badly = [text for process in processes for text in process.ended_badly]
    seen.starts = sum(process.starts for process in processes)
    return seen


def _traces(
    seen: chaos_snapshot.Snapshot, checked: Sequence[reconciliation.Checked], processes: Sequence[hosts.Host]
) -> list[str]:
    """The findings, some of each check, with all that is known of their messages."""
    found = [finding for check in checked for finding in check.findings[:MAX_TRACES]]
    lines = list(chaos_snapshot.logged(processes)) if found else []
    texts = []
    for finding in found:
        story = chaos_snapshot.trace(seen, finding.message_id, lines) if finding.message_id else []
        texts.append("\n    ".join([finding.text, *story]))
    return texts
