"""What a run says: a table of kills, figures, checks, and the findings with the trace of each message."""

import collections
import platform
from collections.abc import Iterator, Mapping, Sequence

import apsw

import postroad
from tests.chaos import boundaries, networks, trial
from tests.chaos.boundaries import Moment

# The programs are those of tests/postgres_server.py.
POSTGRES = "18"
INTRODUCTION = """\
# Crash matrix: results

Written by `make chaos`. Senders over HTTP and SMTP, an unreliable mail host and unreliable webhook endpoints keep the
service busy while its processes are killed with SIGKILL, at named transaction boundaries and at random moments, and
started again: a writer with its frontends, or a single frontend. On PostgreSQL the server is shut down immediately and
terminates connections, and the network in front of it resets them, drops packets, and loses COMMITs and their replies.
With failovers, there are a primary and a synchronous standby: the primary is killed with all of its processes, and the
standby promoted at once.
Afterwards the records of senders, store, mail host, endpoints and logs are reconciled.
"""


def write(outcomes: Mapping[str, trial.Outcome]) -> str:
    """The page."""
    versions = {
        "Postroad": postroad.__version__,
        "Python": platform.python_version(),
        "SQLite": apsw.sqlite_lib_version(),
        "PostgreSQL": POSTGRES,
        platform.system(): platform.machine(),
    }
    parts = [INTRODUCTION, ", ".join(f"{name} {version}" for name, version in versions.items()) + ".\n"]
    parts += ["\n".join(section(name, outcome)) for name, outcome in outcomes.items()]
    return "\n".join(parts) + "\n"


def section(name: str, outcome: trial.Outcome) -> Iterator[str]:
    """One trial."""
    yield f"## {name}\n"
    yield f"Seed {outcome.plan.seed}, {outcome.seconds:.0f} s.\n"
    yield from table(("killed in", *(moment.value for moment in Moment)), kills(outcome))
    yield ""
    if outcome.plan.network is not None:
        yield from table(("cut off in", *(loss.value for loss in networks.Loss)), losses(outcome.plan.network))
        yield ""
    if outcome.outages:
        yield from table(("failover", "time to promotion, s", "no mail accepted for, s"), outages(outcome))
        yield ""
    yield from table(("figure", "count"), figures(outcome))
    yield ""
    yield from table(("check", "examined", "findings", "what must hold"), checks(outcome))
    yield ""
    for trace in outcome.traces:
        yield f"```text\n{trace}\n```\n"


def kills(outcome: trial.Outcome) -> list[tuple[object, ...]]:
    """The matrix."""
    return [(kind, *(outcome.kills[kind, moment] for moment in Moment)) for kind in boundaries.KINDS]


def losses(lossy: networks.Network) -> list[tuple[object, ...]]:
    """The COMMITs with an unknown outcome; a transaction may be of several kinds."""
    return [(kind, *(lossy.losses[kind, loss] for loss in networks.Loss)) for kind in boundaries.KINDS]


def outages(outcome: trial.Outcome) -> list[tuple[object, ...]]:
    """What each failover cost."""
    return [
        (number, f"{one.promotion_seconds:.2f}", f"{one.seconds:.2f}") for number, one in enumerate(outcome.outages, 1)
    ]


def figures(outcome: trial.Outcome) -> list[tuple[object, ...]]:
    """The totals of a trial."""
    snapshot = outcome.snapshot
    doubts, ids = snapshot.doubts(), {recipient.email: recipient.id for recipient in snapshot.recipients}
    doubled = {email: count for email, count in snapshot.taken.items() if count > 1}
    statuses = collections.Counter(recipient.status for recipient in snapshot.recipients)
    received = sum(map(len, snapshot.received.values()))
    return [
        ("kills", outcome.kills.total()),
        ("kills at a boundary", sum(count for (kind, _), count in outcome.kills.items() if kind in boundaries.KINDS)),
        ("kills at a random moment", outcome.kills[boundaries.ANY_MOMENT, ""]),
        ("kills of a single frontend, which ended its writer", outcome.kills[boundaries.A_FRONTEND, ""]),
        ("kills of a writer, which ended its frontends", outcome.writers),
        ("slowest end of such frontends, in milliseconds", round(outcome.orphaned_seconds * 1000)),
        *outcome.disturbed.items(),
        ("submissions", len(snapshot.submissions)),
        ("acknowledged", sum(submission.is_acknowledged for submission in snapshot.submissions)),
        ("attempts to submit them", sum(submission.tries for submission in snapshot.submissions)),
        ("abandoned by their senders", sum(submission.is_abandoned for submission in snapshot.submissions)),
        ("messages", len(snapshot.messages)),
        ("recipients", len(snapshot.recipients)),
        *((f"recipients {status}", count) for status, count in sorted(statuses.items())),
        ("copies accepted by the mail host", sum(snapshot.taken.values())),
        ("recipients with more than one copy", len(doubled)),
        ("of them with a doubt in the log", sum(doubts[ids.get(email, "")] > 0 for email in doubled)),
        ("events", len(snapshot.events)),
        ("requests to endpoints", received),
        ("events received more than once", sum(len(got) > 1 for got in snapshot.received.values())),
        ("events whose attempts ran out", sum(event.state == "failed" for event in snapshot.events)),
        ("process starts", snapshot.starts),
    ]


def checks(outcome: trial.Outcome) -> list[tuple[object, ...]]:
    """What each check examined and found."""
    return [(check.name, check.examined, len(check.findings), check.says) for check in outcome.checked]


def table(head: Sequence[object], rows: Sequence[Sequence[object]]) -> Iterator[str]:
    """A table of Markdown, with columns that line up for whoever reads it in a terminal."""
    texts = [[str(cell) for cell in row] for row in (head, *rows)]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in texts
    ]
    yield lines[0]
    yield "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    yield from lines[1:]
