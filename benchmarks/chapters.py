"""The benchmarks, in the order in which they run and appear in RESULTS.md.

Each is a module (`python -m benchmarks.NAME`) that writes NAME.json. `whole` has the options of a full run; all full
runs together take less than two hours on two cores. `quick` has the options of a run of about a minute, which only
shows that the benchmark works.
"""

import dataclasses

from benchmarks import sheets
from benchmarks.peers import mail_servers


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Chapter:
    """A benchmark: its make target, a summary, and how its result is read.

    `goal` is shown if the result has none. Some benchmarks have no goal.
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
        about="Messages of 5 KB durably accepted per second over HTTP. A response counts when the message is on "
        "disk; nothing is delivered meanwhile. The other mail servers accept the same content over SMTP.",
        quick=("--rounds", "1", "--seconds", "2", "--warm-up", "1"),
        whole=("--rounds", "6", "--seconds", "5", "--warm-up", "2"),
        goal="at least 3 times Postfix",
    ),
    Chapter(
        name="submission",
        target="make bench-submission",
        about="The same over SMTP: messages of 5 KB acknowledged with 250 per second, over persistent sessions and "
        "with one connection per message. Clients of Postroad authenticate; those of the others do not.",
        quick=("--rounds", "1", "--seconds", "2", "--peers", "sqlite", "postgresql", *mail_servers.ALL),
        whole=("--rounds", "2"),
        goal="at least 4 times Postfix",
    ),
    Chapter(
        name="batch",
        target="make bench-batch",
        about="Messages of 5 KB durably accepted per second over HTTP, as `POST /emails/batch` of 100 messages and as "
        "single sends.",
        quick=("--rounds", "1", "--seconds", "2", "--warm-up", "1"),
        whole=("--rounds", "3", "--seconds", "5", "--warm-up", "2"),
        goal="at least 3 times single sends",
    ),
    Chapter(
        name="deliver",
        target="make bench-deliver",
        about="Messages per second from the send request until the destination has accepted them and the result is "
        "stored: 5 KB and 100 KB, unsigned and signed with DKIM. The other mail servers relay the same content.",
        quick=("--rounds", "1", "--messages", "1000", "--warm-up", "200", "--large-messages", "200"),
        whole=("--rounds", "3", "--messages", "10000"),
        goal="at least 5 times Postfix, and 4 times when signed",
    ),
    Chapter(
        name="backlog_growth",
        target="make bench-backlog",
        about="Whether queued mail slows down new mail: the rates with 0, 10,000, 100,000 and 1,000,000 recipients "
        "waiting for a later attempt.",
        quick=("--rounds", "1", "--messages", "1000", "--warm-up", "200", "--seconds", "2", "--waiting", "0", "10000"),
        whole=("--rounds", "2"),
        goal="at least 90 % of the rate of an empty queue",
        read=sheets.of_growth,
    ),
    Chapter(
        name="growth",
        target="make bench-growth",
        about="What a message costs with more recipients, accounts, destinations, stored messages and delivery "
        "processes: CPU time, memory, and the slowest query. `make bench` measures the sizes that take minutes; all of "
        "them take hours and hundreds of gigabytes, and those that the disk does not allow are not measured.",
        quick=(
            *("--messages", "500", "--windows", "1", "--recipients", "1", "50", "--accounts", "1", "100"),
            *("--destinations", "1", "100", "--stored", "10000", "--processes", "1", "2"),
        ),
        whole=(
            *("--messages", "3000", "--windows", "2", "--destinations", "1", "100", "1000", "10000"),
            *("--stored", "10000", "1000000"),
        ),
        goal="at most 120 % of the cost at the smallest size",
        read=sheets.of_cost_growth,
    ),
    Chapter(
        name="latency",
        target="make bench-latency",
        about="How long a caller waits for the 202, and how long a message takes to reach its destination, at 10 to "
        "1,000 messages a second that come at random moments. Postfix gets the same messages over SMTP.",
        quick=("--rates", "100", "--seconds", "2"),
        goal="on SQLite at 100 messages a second, the 202 within 1.5 ms plus one fdatasync (p50) and within 3 times "
        "that (p99), and the final dot at the destination within 5 ms (p50)",
        read=sheets.of_latency,
    ),
    Chapter(
        name="codes",
        target="make bench-codes",
        about="How long a login code takes from the send request to the destination while mail of the same account to "
        "the same destination waits: none, 250,000 and 1,000,000 messages.",
        quick=("--waiting", "0", "10000", "--codes", "50"),
        goal="p99 of at most 1 s",
        read=sheets.of_codes,
    ),
    Chapter(
        name="destinations",
        target="make bench-destinations",
        about="How much one failing destination slows down forty healthy ones: their rate alone, and beside a host "
        "that refuses connections or never replies.",
        quick=("--rounds", "1", "--messages", "100", "--warm-up", "500"),
        whole=("--rounds", "3"),
        goal="at least 95 % of the rate without a failing one",
    ),
    Chapter(
        name="webhooks",
        target="make bench-webhooks",
        about="Webhooks sent per second, each a signed POST over TLS, and how much one endpoint that never answers "
        "slows down the others.",
        quick=("--rounds", "1", "--events", "5000", "--warm-up", "1000"),
        whole=("--rounds", "3"),
        goal="at least 95 % of the rate without one that hangs",
    ),
    Chapter(
        name="memory",
        target="make bench-memory",
        about="Peak memory of a service with all roles while 64 messages of 10 MiB are sent concurrently. Senders "
        "retry when asked to; every message must arrive complete.",
        quick=("--rounds", "1", "--messages", "8"),
        whole=("--rounds", "2"),
        goal="at most 1000 MB",
        read=sheets.of_large_messages,
    ),
    Chapter(
        name="read",
        target="make bench-read",
        about="Responses to `GET /emails/{id}` per second, alone and while messages are accepted.",
        quick=("--rounds", "1", "--seconds", "2", "--warm-up", "1", "--messages", "2000"),
        whole=("--rounds", "2"),
    ),
    Chapter(
        name="dashboard",
        target="make bench-dashboard",
        about="Response time of the dashboard for an account with a million messages: the time at the server, for "
        "every list and every kind of search.",
        quick=("--peers", "sqlite", "--messages", "50000", "--times", "5"),
        whole=("--times", "10"),
        goal="at most 300 ms",
        read=sheets.of_dashboard,
    ),
    Chapter(
        name="commands",
        target="make bench-cli",
        about="How long a user waits for short commands: help, the version, a list of messages, a send and a list of "
        "accounts, from the start of the process to its end.",
        quick=("--times", "3"),
        goal="at most 150 ms, and 400 ms for a list of accounts",
        read=sheets.of_commands,
    ),
    Chapter(
        name="costs",
        target="make bench-costs",
        about="CPU time per message by phase, from samples of the stack, to find the best candidates for optimisation.",
        quick=("--rounds", "1", "--messages", "1000", "--warm-up", "200"),
        whole=("--rounds", "1"),
        read=sheets.of_costs,
    ),
)
