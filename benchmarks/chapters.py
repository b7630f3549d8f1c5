"""The benchmarks in the order in which they run and in which RESULTS.md tells of them.

Each is a module of its own (`python -m benchmarks.NAME`) that writes NAME.json. `whole` are its options in a whole run,
chosen so that all of them together take well under an hour on two cores. `quick` are those with which it ends within a
minute or so: enough to see that everything works, and too little to believe the figures.
"""

import dataclasses

from benchmarks import sheets


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Chapter:
    """A benchmark: what runs it alone, what it measures, for a reader in a hurry, and how its result is read.

    `goal` is for a page whose result has none: what was to be judged and was not. Some benchmarks have no goal.
    """

    name: str
    target: str
    about: str
    quick: tuple[str, ...]
    whole: tuple[str, ...] = ()
    goal: str = ""
    read: sheets.Read = sheets.of_rates


ALL = (
    Chapter(
        name="accept",
        target="make bench-accept",
        about="How many messages of 5 KB are accepted for good in a second over HTTP. An answer counts when the "
        "message is on disk, and nothing is delivered meanwhile. Postfix and Haraka take the same content over SMTP.",
        quick=("--rounds", "1", "--seconds", "2", "--warm-up", "1"),
        whole=("--rounds", "6", "--seconds", "5", "--warm-up", "2"),
        goal="at least 3 times Postfix",
    ),
    Chapter(
        name="submission",
        target="make bench-submission",
        about="The same over SMTP: how many messages of 5 KB get their 250 in a second, over sessions that are kept "
        "and over one connection for each. Postroad's clients log in, those of the others need not.",
        quick=("--rounds", "1", "--seconds", "2", "--peers", "sqlite", "postgresql", "postfix", "haraka"),
        whole=("--rounds", "2"),
        goal="at least 4 times Postfix",
    ),
    Chapter(
        name="deliver",
        target="make bench-deliver",
        about="How many messages a second come through, from the client's send until the destination has them and the "
        "store knows it: 5 KB and 100 KB, unsigned and signed by DKIM.",
        quick=("--rounds", "1", "--messages", "1000", "--warm-up", "200", "--large-messages", "200"),
        whole=("--rounds", "2", "--messages", "10000"),
        goal="at least 5 times Postfix, and 4 times when signed",
    ),
    Chapter(
        name="backlog_growth",
        target="make bench-backlog",
        about="Whether mail that waits in the queue slows the mail that does not: the rates with nothing, ten "
        "thousand, a hundred thousand and a million recipients waiting.",
        quick=("--rounds", "1", "--messages", "1000", "--warm-up", "200", "--seconds", "2", "--waiting", "0", "10000"),
        whole=("--rounds", "2"),
        goal="at least 90 % of the rate of an empty queue",
        read=sheets.of_growth,
    ),
    Chapter(
        name="destinations",
        target="make bench-destinations",
        about="What one dead destination costs forty healthy ones: the rate of the healthy ones without it, and beside "
        "a host that refuses connections or never says a word.",
        quick=("--rounds", "1", "--messages", "100", "--warm-up", "500"),
        whole=("--rounds", "2"),
        goal="at least 95 % of the rate without a dead one",
    ),
    Chapter(
        name="webhooks",
        target="make bench-webhooks",
        about="How many events a second are told to webhook receivers, each by a signed POST over TLS, and what one "
        "receiver that never answers costs the others.",
        quick=("--rounds", "1", "--events", "5000", "--warm-up", "1000"),
        whole=("--rounds", "2"),
        goal="at least 95 % of the rate without one that hangs",
    ),
    Chapter(
        name="memory",
        target="make bench-memory",
        about="How much memory 64 messages of 10 MiB take that are sent at the same time to a service with all "
        "roles. A sender that is told to try again later does so; every message must arrive whole.",
        quick=("--rounds", "1", "--messages", "8"),
        whole=("--rounds", "2"),
        goal="at most 1000 MB",
        read=sheets.of_large_messages,
    ),
    Chapter(
        name="reading",
        target="make bench-reading",
        about="How many times a second `GET /emails/{id}` is answered, alone and while sends come in.",
        quick=("--rounds", "1", "--seconds", "2", "--warm-up", "1", "--messages", "2000"),
        whole=("--rounds", "2"),
    ),
    Chapter(
        name="dashboard",
        target="make bench-dashboard",
        about="How long people wait for a page of the dashboard when their account has a million messages: the time "
        "at the server, for every list and every kind of search.",
        quick=("--peers", "sqlite", "--messages", "50000", "--times", "5"),
        whole=("--times", "10"),
        goal="at most 300 ms",
        read=sheets.of_dashboard,
    ),
    Chapter(
        name="costs",
        target="make bench-costs",
        about="What a message costs the service, phase by phase, from samples of its stack: where the next person who "
        "wants it quicker should look first.",
        quick=("--rounds", "1", "--messages", "1000", "--warm-up", "200"),
        whole=("--rounds", "1"),
        read=sheets.of_costs,
    ),
)
