"""RESULTS.md of simulated days: values in, text out. Sentences with figures are made of the days that are shown."""

import typing

from benchmarks import plots, report
from benchmarks.simulation import day_charts, measurements, outcome, scenario

Runs = typing.Mapping[str, outcome.Run]


def charts(days: Runs, by_hosts: typing.Sequence[outcome.Run]) -> dict[str, plots.Chart]:
    """The charts by the names of their files."""
    found: dict[str, plots.Chart] = {}
    seen = {name: run.outcome for name, run in days.items()}
    if seen:
        found |= {
            "providers": day_charts.by_provider(seen),
            "accounts": day_charts.by_account(seen),
            "fairness": day_charts.fairness(seen),
            "deferred": day_charts.deferred(seen),
            "connections": day_charts.connections(seen),
            "queue": day_charts.queued(seen),
        }
    if "hostile" in seen:
        found["hostile"] = day_charts.hostile(seen["hostile"])
    if "outage" in seen:
        found["recovery"] = day_charts.recovery(seen["outage"])
    if by_hosts:
        found["hosts"] = day_charts.by_hosts([run.outcome for run in by_hosts])
    return found


def page(days: Runs, by_hosts: typing.Sequence[outcome.Run]) -> str:
    """The page."""
    lines = [
        "# Delivery, simulated",
        "",
        (
            "`make simulate` wrote this page; [README.md](README.md) says what is real and what is "
            "simulated, and how to repeat a day."
        ),
    ]
    if days:
        seen = {name: run.outcome for name, run in days.items()}
        lines += ["", "## Days", "", *(f"- **{name}**: {day.day.about}" for name, day in seen.items())]
        lines += ["", *_days(seen)]
        for title, name, sentences in _sections(seen):
            lines += ["", f"## {title}", "", f"![{title}]({name}.svg)", "", *sentences]
    if by_hosts:
        lines += ["", "## Number of hosts", "", *_hosts_sentences(by_hosts), "", *_by_hosts(by_hosts)]
        lines += ["", "![Time to delivery by the number of hosts](hosts.svg)"]
    for name, run in days.items():
        lines += ["", f"## Destinations: {name}", "", *_kinds(run.outcome)]
    lines += ["", "## What was run", "", *_runs([*days.values(), *by_hosts])]
    return "\n".join(lines) + "\n"


def _days(days: day_charts.Outcomes) -> list[str]:
    rows: list[tuple[str, ...]] = [
        ("day", "messages, hosts", "delivered", "bounced", "fairness", "attempts, deferred", "connections", "queue")
    ]
    for name, day in days.items():
        rows.append(
            (
                name,
                f"{day.accepted:,}, {day.day.hosts}",
                f"{day.ended.get('delivered', 0):,}",
                f"{day.ended.get('bounced', 0):,}",
                "" if day.fairness is None else f"{day.fairness:.4f}",
                f"{day.attempts:,}, {day.deferred / max(1, day.attempts):.1%}",
                f"at most {day.max_connections:,}",
                f"at most {day.max_queued:,}",
            )
        )
    return list(report.markdown_table(rows))


def _sections(days: day_charts.Outcomes) -> typing.Iterator[tuple[str, str, list[str]]]:
    yield (
        "Time to delivery by provider",
        "providers",
        ["Greylisting, tarpits and silent hosts decide themselves how long mail takes: see the tables below."],
    )
    yield (
        "Time to delivery by account",
        "accounts",
        [
            "Accounts are ordered by the mail that they send; senders of large batches are not among them.",
            "The slowest tenth is mostly greylisting, which defers the first mail of an account to a domain.",
        ],
    )
    counted = f"Accounts with at least {measurements.MIN_MESSAGES} messages count."
    yield "Fairness", "fairness", [counted, "", *(_fairness(name, day) for name, day in days.items())]
    yield (
        "Wasted attempts",
        "deferred",
        ["A deferred attempt is repeated later; only kinds with at least one in a hundred are shown."],
    )
    yield (
        "Connections",
        "connections",
        [f"A host opens at most 500; the most that were open at once are {_most(days, 'max_connections')}."],
    )
    yield "The queue", "queue", [f"The longest queues: {_most(days, 'max_queued')}."]
    if "outage" in days:
        yield "Recovery after an outage", "recovery", _recovery(days["outage"])
    if "hostile" in days:
        yield "Hostile senders", "hostile", _hostile(days["hostile"])


def _fairness(name: str, one: outcome.Outcome) -> str:
    if one.worst_prompt is None:
        return f"- {name}: no account has sent enough to say."
    return f"- {name}: at least {one.worst_prompt:.1%} of the mail of every account was delivered within a minute."


def _most(days: day_charts.Outcomes, figure: str) -> str:
    return ", ".join(f"{getattr(day, figure):,} ({name})" for name, day in days.items())


def _recovery(one: outcome.Outcome) -> list[str]:
    sentences = []
    for outage in one.day.outages:
        most = max(sample.queued.get(outage.kind, 0) for sample in one.samples)
        seconds = one.recovery_seconds(outage)
        when = "The queue was" if seconds is None else f"{seconds / 60:.0f} minutes after its end, the queue was"
        end = "not as short as before within the simulation" if seconds is None else "as short as before"
        sentences += [
            f"At most {most:,} recipients waited for {outage.kind}. {when} {end}.",
            (
                f"Of the attempts there, {_deferred_part(one, outage)} were in vain on that day: "
                "breakers skip hosts that do not answer, and probe them one message at a time."
            ),
        ]
    return sentences


def _deferred_part(one: outcome.Outcome, outage: scenario.Outage) -> str:
    kind = one.kinds[outage.kind]
    return f"{kind.deferred:,} of {kind.attempts:,}"


def _hostile(one: outcome.Outcome) -> list[str]:
    sentences = []
    for sender in one.day.senders:
        sent, waits = round(one.day.messages * sender.share), one.senders[sender.name]
        at = one.suspended.get(sender.name)
        end = "" if at is None else f"; the bounce guard suspended it {at - sender.begins:.0f} seconds after it began"
        sentences.append(f"- {sender.name} wanted to send {sent:,} messages, and {waits.count:,} were delivered{end}.")
    return [*sentences, "- The charts above show what the other accounts noticed of it."]


def _hosts_sentences(runs: typing.Sequence[outcome.Run]) -> list[str]:
    one = runs[0].outcome.day
    rate = one.messages / one.seconds
    millions = rate * scenario.DAY_SECONDS / 1e6
    return [
        (
            f"A day of {one.seconds / 60:.0f} minutes at the rates of {millions:.0f} million messages a day: "
            f"{rate:.0f} a second on average and {one.busy * rate:.0f} at noon, from {one.accounts:,} accounts."
        )
    ]


def _by_hosts(runs: typing.Sequence[outcome.Run]) -> list[str]:
    rows: list[tuple[str, ...]] = [
        (
            *("hosts", "google p50 s", "google p99 s", "small domains p99 s", "fairness", "deferred"),
            *("connections", "longest queue"),
        )
    ]
    for run in runs:
        one = run.outcome
        google, small = one.kinds["google"].waits, one.kinds["small domains"].waits
        rows.append(
            (
                f"{one.day.hosts}",
                *(_seconds(value) for value in (google.p50, google.p99, small.p99)),
                "" if one.fairness is None else f"{one.fairness:.4f}",
                f"{one.deferred / max(1, one.attempts):.1%}",
                f"{one.max_connections:,}",
                f"{one.max_queued:,}",
            )
        )
    return list(report.markdown_table(rows))


def _kinds(one: outcome.Outcome) -> list[str]:
    rows: list[tuple[str, ...]] = [("destinations", "delivered", "p50 s", "p90 s", "p99 s", "attempts", "deferred")]
    for name, kind in one.kinds.items():
        waits = [_seconds(value) for value in (kind.waits.p50, kind.waits.p90, kind.waits.p99)]
        rows.append((name, f"{kind.waits.count:,}", *waits, f"{kind.attempts:,}", f"{kind.deferred:,}"))
    return list(report.markdown_table(rows))


def _runs(runs: typing.Sequence[outcome.Run]) -> list[str]:
    rows: list[tuple[str, ...]] = [
        ("day", "seed", "messages", "ended, queued, twice after a crash", "violations", "CPU", "CPU of a message")
    ]
    for run in runs:
        one = run.outcome
        rows.append(
            (
                one.day.name,
                f"{one.seed}",
                f"{one.accepted:,}",
                f"{sum(one.ended.values()):,}, {one.queued:,}, {one.duplicates:,}",
                ", ".join(one.violations) or "none",
                f"{run.cpu_seconds:,.0f} s",
                f"{run.cpu_seconds / max(1, one.accepted) * 1e6:,.0f} µs",
            )
        )
    machines = dict.fromkeys(f"{run.facts.get('processor', '')}, Python {run.facts.get('Python', '')}" for run in runs)
    return [*report.markdown_table(rows), "", f"CPU is the processor time on {'; '.join(machines)}."]


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:,.1f}"
