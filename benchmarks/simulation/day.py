"""One simulated day: hosts, mail, what happens to them, and what was seen."""

import asyncio
import dataclasses
import typing

from benchmarks.simulation import (
    costs,
    internet,
    invariants,
    measurements,
    scenario,
    simulated_host,
    simulated_store,
    traffic,
    virtual_time,
)
from postroad import config
from postroad.model import throttle

SECRET_KEY = "of a simulation: 7Yq0wT4nZs9Lr2Xd5Kf8Hb1Vc6Jm"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What was seen of a day."""

    day: scenario.Scenario
    seen: measurements.Measurements
    violations: tuple[str, ...]
    fairness: float
    accepted: int
    queued: int  # at the end
    duplicates: int
    suspended: dict[str, float]  # when, in seconds of the day
    host_seconds: float  # of the busiest host's core
    server_seconds: float
    ended_at: float


def run(day: scenario.Scenario, *, seed: int) -> Outcome:
    """Simulate a day; the same seed gives the same day."""
    return virtual_time.run(lambda: _run(day), seed=seed)


async def _run(day: scenario.Scenario) -> Outcome:
    loop = asyncio.get_running_loop()
    settings = settings_of(day)
    database = simulated_store.Database(costs.measured(), cores=day.server_cores)
    checks = invariants.Invariants(database.queue, messages=day.messages)
    world, seen = internet.Internet(day, checks), measurements.Measurements()
    hosts = [simulated_host.Host(number, settings, database, world, seen) for number in range(day.hosts)]
    rate = throttle.RateLimit(settings.limits.request_rate, settings.limits.request_burst)
    sent = traffic.Traffic(day, hosts=hosts, database=database, seen=seen, rate=rate)
    for crash in day.crashes:
        loop.call_at(crash.at, hosts[crash.host].die)
    mail = loop.create_task(sent.run())
    in_outage = {outage.kind for outage in day.outages}
    while (not mail.done() or database.queue.rows) and loop.time() < day.seconds + day.drain_seconds:
        await asyncio.sleep(max(day.seconds / measurements.SAMPLES, measurements.MIN_SAMPLE_SECONDS))
        kinds = [world.kind_of(row.queue_key.partition(" ")[0]).name for row in database.queue.rows.values()]
        waiting = sum(kind in in_outage for kind in kinds)
        seen.samples.append(measurements.Sample(loop.time(), len(kinds), checks.connections(), waiting))
        for host in hosts:
            host.check()
    await mail
    checks.check_counts(loop.time())
    return Outcome(
        day=day,
        seen=seen,
        violations=tuple(checks.violations),
        fairness=seen.fairness(sent.well_behaved),
        accepted=checks.accepted,
        queued=len(database.queue.rows),
        duplicates=checks.duplicates,
        suspended={name: (at - simulated_host.MIDNIGHT) / 1e6 for name, at in sorted(database.suspended.items())},
        host_seconds=max(host.core.seconds for host in hosts),
        server_seconds=database.server.seconds,
        ended_at=loop.time(),
    )


def settings_of(day: scenario.Scenario) -> config.Settings:
    """The defaults of the service, and what the scenario sets."""
    overrides: dict[str, typing.Any] = {
        "security": {"secret_key": SECRET_KEY},
        # Hosts look for mail that others left once a second together: more often costs most of the simulation's time.
        # Hosts look for mail that others left once a second together: more often costs most of the simulation's time.
        "delivery": {"sign": False, "poll_milliseconds": 1000 * day.hosts, **day.delivery},
        "providers": day.providers,
    }
    return config.load(environment={}, overrides=overrides)
