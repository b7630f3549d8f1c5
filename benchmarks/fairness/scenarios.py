"""Mixes of innocent and hostile mail. Times are seconds; hostile mail comes from the first second on."""

import collections.abc
import dataclasses
import random
import typing

from benchmarks.fairness import simulator

# Before this, destinations become known, and attacks unfold.
MEASURED_FROM = 60.0
INNOCENT_ACCOUNTS, INNOCENT_DESTINATIONS, INNOCENT_PER_SECOND = 1_000, 3_000, 100
NEW_PART = 0.1


def healthy(_: simulator.Destination, chance: random.Random) -> float:
    """0.3 s, sometimes some seconds."""
    return min(chance.lognormvariate(-1.2, 0.6), 30.0)


def holding(there: simulator.Destination, chance: random.Random) -> float:
    """Accepts quickly until it is trusted, then holds the final reply."""
    return healthy(there, chance) if there.begun < 20 else 600.0


def tarpit(_: simulator.Destination, chance: random.Random) -> float:
    """Each reply takes as long as it may."""
    return chance.uniform(60.0, 300.0)


def silent(_: simulator.Destination, __: random.Random) -> float:
    """Connecting times out."""
    return 30.0


def flapping(there: simulator.Destination, chance: random.Random) -> float:
    """Quick and endless in turn."""
    return healthy(there, chance) if there.begun % 4 else 300.0


Arrivals = typing.Callable[[random.Random], list[simulator.Job]]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A mix."""

    name: str
    about: str
    arrivals: Arrivals
    until: float = 240.0
    is_hostile: bool = True


def innocent(
    chance: random.Random, *, until: float = 240.0, per_second: int = INNOCENT_PER_SECOND
) -> list[simulator.Job]:
    """Many accounts with a little mail each, mostly to hosts that are known."""
    known = [simulator.Destination(healthy) for _ in range(INNOCENT_DESTINATIONS)]
    jobs = []
    for _ in range(int(until * per_second)):
        is_new = chance.random() < NEW_PART
        there = simulator.Destination(healthy) if is_new else chance.choice(known)
        account = f"innocent {chance.randrange(INNOCENT_ACCOUNTS)}"
        jobs.append(simulator.Job(account, there, "new" if is_new else "proven", chance.uniform(0.0, until)))
    for there in known:
        there.is_proven = there.is_responsive = True
    return jobs


def hostile(
    behaviour: simulator.Behaviour, *, accounts: int = 1, destinations: int, messages: int, is_dead: bool = False
) -> Arrivals:
    """Accounts that send much to destinations of their own, beside innocent ones."""

    def arrivals(chance: random.Random) -> list[simulator.Job]:
        jobs = innocent(chance)
        for account in range(accounts):
            for _ in range(destinations):
                there = simulator.Destination(behaviour, is_dead=is_dead)
                jobs += [
                    simulator.Job(f"hostile {account}", there, "hostile", chance.uniform(0.0, 10.0))
                    for _ in range(messages)
                ]
        return jobs

    return arrivals


def honest_dead(chance: random.Random) -> list[simulator.Job]:
    """Each innocent account also writes to dead hosts."""
    jobs = innocent(chance)
    for account in range(INNOCENT_ACCOUNTS):
        for _ in range(3):
            there = simulator.Destination(silent, is_dead=True)
            arrived = chance.uniform(0.0, 100.0)
            jobs += [simulator.Job(f"innocent {account}", there, "hostile", arrived) for _ in range(5)]
    return jobs


def honest_tarpits(chance: random.Random) -> list[simulator.Job]:
    """Each innocent account also writes to a host that takes minutes."""
    jobs = innocent(chance)
    for account in range(INNOCENT_ACCOUNTS):
        there = simulator.Destination(tarpit)
        jobs += [simulator.Job(f"innocent {account}", there, "hostile", chance.uniform(0.0, 100.0)) for _ in range(3)]
    return jobs


def newsletter(chance: random.Random) -> list[simulator.Job]:
    """One account alone, with more than can be sent."""
    there = [simulator.Destination(healthy, is_proven=True, is_responsive=True) for _ in range(2_000)]
    return [simulator.Job("big", chance.choice(there), "proven", 0.0) for _ in range(200_000)]


ALL: collections.abc.Sequence[Scenario] = (
    Scenario(
        name="nobody hostile",
        about="1,000 accounts send 100 messages a second to 3,000 known hosts and, every tenth message, to new ones.",
        arrivals=innocent,
        is_hostile=False,
    ),
    Scenario(
        name="one account, 190 hosts that hold the final reply",
        about="The attack that was found: each host accepts 20 messages quickly, and holds the reply to all others.",
        arrivals=hostile(holding, destinations=190, messages=60),
    ),
    Scenario(
        name="one account, 3,000 hosts that hold the final reply",
        about="The same with more hosts than connections.",
        arrivals=hostile(holding, destinations=3_000, messages=30),
    ),
    Scenario(
        name="one account, 2,000 tarpits",
        about="Hosts that take one to five minutes for each message.",
        arrivals=hostile(tarpit, destinations=2_000, messages=10),
    ),
    Scenario(
        name="one account, 2,000 silent hosts",
        about="Connecting times out after 30 s. The circuit breaker, which would help, is left out.",
        arrivals=hostile(silent, destinations=2_000, messages=10, is_dead=True),
    ),
    Scenario(
        name="one account, 500 hosts that are quick and endless in turn",
        about="Every fourth message takes five minutes.",
        arrivals=hostile(flapping, destinations=500, messages=60),
    ),
    Scenario(
        name="4 accounts, 200 holding hosts each",
        about="Accounts that act together.",
        arrivals=hostile(holding, accounts=4, destinations=200, messages=40),
    ),
    Scenario(
        name="20 accounts, 100 holding hosts each",
        about="More accounts that act together.",
        arrivals=hostile(holding, accounts=20, destinations=100, messages=40),
    ),
    Scenario(
        name="20 accounts, 100 tarpits each",
        about="Accounts that act together, with hosts that are never quick.",
        arrivals=hostile(tarpit, accounts=20, destinations=100, messages=10),
    ),
    Scenario(
        name="1,000 accounts, three dead hosts each",
        about="Nobody is hostile, but each account has mail for hosts that do not answer.",
        arrivals=honest_dead,
    ),
    Scenario(
        name="1,000 accounts, a tarpit each",
        about="Nobody is hostile, but each account also writes to a host that takes minutes.",
        arrivals=honest_tarpits,
    ),
    Scenario(
        name="one large sender alone",
        about="One account sends 200,000 messages to 2,000 healthy hosts, and nobody else sends.",
        arrivals=newsletter,
        until=120.0,
        is_hostile=False,
    ),
)
