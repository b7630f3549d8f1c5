"""Short days at random, for the invariants: every seed is another world, another mix of mail and other misfortunes.

Days are short and their retry schedule is, too, so that everything is over soon: what is wrong shows in a few hundred
messages as well as in millions.
"""

import random
import typing

from benchmarks.simulation import scenario

RETRY_SECONDS = [20, 60, 120, 240]
DAY_SECONDS = 120.0
MAX_MESSAGES = 400


def make(seed: int) -> scenario.Scenario:
    """The day of a seed."""
    chance = random.Random(seed)
    hosts = chance.choice((1, 1, 2, 3, 5))
    values: dict[str, typing.Any] = {
        "about": f"seed {seed}",
        "messages": chance.randint(50, MAX_MESSAGES),
        "accounts": chance.choice((1, 2, 5, 20)),
        "hosts": hosts,
        "seconds": chance.choice((DAY_SECONDS / 10, DAY_SECONDS)),
        "drain_seconds": 7200.0,
        "busy": chance.uniform(1.0, 2.0),
        "tick_seconds": 0.0,
        "look_seconds": 0.0,
        "urgent": chance.choice((0.0, 0.0, 0.2)),
        "senders": [_sender(chance, number) for number in range(chance.choice((0, 0, 1, 2)))],
        "outages": [_outage(chance) for _ in range(chance.choice((0, 0, 1, 2)))],
        # The last host survives, or nobody would be left to deliver.
        "crashes": [
            {"host": host, "at": chance.uniform(1.0, DAY_SECONDS)}
            for host in range(hosts - 1)
            if chance.random() < 0.25
        ],
        "providers": {"google": _limits(chance), "others": _limits(chance)},
        "delivery": {
            "retry_seconds": RETRY_SECONDS,
            "connections": chance.choice((20, 100, 500)),
        },
        "testing": {"lease_seconds": chance.choice((10, 60)), "poll_milliseconds": 2000},
    }
    return scenario.of(f"random {seed}", values, _kinds(chance))


def _limits(chance: random.Random) -> dict[str, int]:
    return {
        "connections": chance.choice((1, 2, 10, 20)),
        "messages_per_second": chance.choice((2, 10, 50)),
        "messages_per_connection": chance.choice((1, 5, 100)),
    }


def _kinds(chance: random.Random) -> list[dict[str, typing.Any]]:
    google = {
        "name": "google",
        "domain": "gmail.com",
        "mail_host": "gmail-smtp-in.l.google.com",
        "unknown": 0.02,
        "rate": chance.choice((0.0, 1.0, 20.0)),
        "burst": 20.0,
        "limit_enhanced": "4.7.28",
        "limit_reply": "unusual rate of mail",
        "limit_seconds": chance.choice((5.0, 60.0)),
    }
    microsoft = {
        "name": "microsoft",
        "domain": "outlook.com",
        "mail_host": "mx.protection.outlook.com",
        "unknown": 0.1,
        "block_share": 0.3,
        "block_enhanced": "5.7.1",
        "block_reply": "on our block list (S3140)",
    }
    return [
        {"share": chance.uniform(0.1, 1.0), **kind}
        for kind in (
            google,
            microsoft,
            _many("small domains", "d", seconds=0.3),
            _many("greylisting", "g", greylist_seconds=chance.choice((10.0, 100.0))),
            _many("tarpits", "t", seconds=10.0, slowest_seconds=100.0),
            _many("silent hosts", "s", is_silent=True),
        )
    ]


def _many(name: str, letter: str, **behaviour: float) -> dict[str, typing.Any]:
    return {
        "name": name,
        "domain": letter + "{number}.example",
        "mail_host": "mx.{domain}",
        "domains": 20,
        **behaviour,
    }


def _sender(chance: random.Random, number: int) -> dict[str, typing.Any]:
    return {
        "name": f"sender{number}",
        "begins": chance.uniform(0.0, DAY_SECONDS / 2),
        "share": chance.uniform(0.1, 0.3),
        "per_second": chance.choice((5.0, 100.0)),
        "kind": chance.choice(("", "tarpits", "google")),
        "unknown": chance.choice((0.0, 0.5)),
        "is_hostile": True,
    }


def _outage(chance: random.Random) -> dict[str, typing.Any]:
    return {
        "kind": chance.choice(("google", "microsoft", "small domains")),
        "begins": chance.uniform(0.0, DAY_SECONDS),
        "seconds": chance.choice((10.0, 60.0, 300.0)),
    }
