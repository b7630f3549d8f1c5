"""One simulated day: hosts, mail, what happens to them, and what was seen."""

import asyncio
import collections
import typing

from benchmarks.simulation import (
    costs,
    internet,
    invariants,
    measurements,
    outcome,
    scenario,
    simulated_host,
    simulated_store,
    traffic,
    virtual_time,
)
from postroad import config
from postroad.model.delivery import throttle
from postroad.model.units import times

SECRET_KEY = "of a simulation: 7Yq0wT4nZs9Lr2Xd5Kf8Hb1Vc6Jm"


def run(day: scenario.Scenario, *, seed: int) -> outcome.Outcome:
    """Simulate a day; the same seed gives the same day."""
    return virtual_time.run(lambda: _run(day, seed), seed=seed)


async def _run(day: scenario.Scenario, seed: int) -> outcome.Outcome:
    loop = asyncio.get_running_loop()
    settings = settings_of(day)
    database = simulated_store.Database(costs.measured(), cores=day.server_cores)
    checks = invariants.Invariants(database.queue, messages=day.messages)
    world, seen = internet.Internet(day, checks), measurements.Measurements()
    hosts = [
        simulated_host.Host(number, settings, database, world, seen, look_seconds=day.look_seconds)
        for number in range(day.hosts)
    ]
    rate = throttle.RateLimit(settings.limits.request_rate, settings.limits.request_burst)
    sent = traffic.Traffic(day, hosts=hosts, database=database, seen=seen, rate=rate)
    for crash in day.crashes:
        loop.call_at(crash.at, hosts[crash.host].die)
    mail, last = loop.create_task(sent.run()), day.seconds + day.drain_seconds
    # A violation ends the day: what comes after it may be its consequence, and may never end.
    while (not mail.done() or database.queue.rows) and loop.time() < last and not checks.violations:
        await asyncio.sleep(max(day.seconds / measurements.SAMPLES, measurements.MIN_SAMPLE_SECONDS))
        seen.sample(loop.time(), _look_at_queue(database, world), world.connections())
        for host in hosts:
            host.check()
    if not checks.violations:
        await mail
    checks.check_counts(loop.time())
    shares = seen.prompt_shares(sent.well_behaved)
    return outcome.Outcome(
        day=day,
        seed=seed,
        violations=tuple(checks.violations),
        fairness=measurements.jain(shares),
        worst_prompt=min(shares, default=None),
        accepted=checks.accepted,
        queued=len(database.queue.rows),
        duplicates=checks.duplicates,
        ended=dict(seen.ended),
        refused=dict(seen.refused),
        kinds={
            kind.name: outcome.Kind(seen.by_kind[kind.name].waits(), seen.attempts[kind.name], seen.deferred[kind.name])
            for kind in day.kinds
        },
        by_size=seen.by_size(sent.names),
        senders={sender.name: seen.by_account[sender.name].waits() for sender in day.senders},
        samples=tuple(seen.samples),
        suspended={name: (at - simulated_host.MIDNIGHT) / 1e6 for name, at in sorted(database.suspended.items())},
        ended_at=loop.time(),
    )


def _look_at_queue(database: simulated_store.Database, world: internet.Internet) -> collections.Counter[str]:
    """How much is queued, by kind; what nobody has tried yet must not have waited for long."""
    queued: collections.Counter[str] = collections.Counter()
    now = asyncio.get_running_loop().time()
    for row in database.queue.rows.values():
        kind = world.kind_of(row.queue_key.partition(" ")[0])
        queued[kind.name] += 1
        if not row.attempt_count and world.must_not_wait(kind, row.account_id):
            waited = now - (row.queued_at - simulated_host.MIDNIGHT) / times.SECOND
            world.checks.waited(now, row.number, waited)
    return queued


def settings_of(day: scenario.Scenario) -> config.Settings:
    """The defaults of the service, and what the scenario sets."""
    overrides: dict[str, typing.Any] = {
        "security": {"installation_key": SECRET_KEY},
        # Hosts look for mail that others left once a second together: more often costs most of the simulation's time.
        "delivery": day.delivery,
        "testing": {"sign": False, "poll_milliseconds": 1000 * day.hosts, **day.testing},
        "providers": day.providers,
    }
    return config.load(environment={}, overrides=overrides)
