"""RESULTS.md of simulated days, and its charts: values in, text out."""

import math
import typing

from benchmarks import plots, report
from benchmarks.simulation import day, measurements, scenario

HOUR_SECONDS = 3600.0


def page(
    outcomes: typing.Mapping[str, day.Outcome],
    by_hosts: typing.Sequence[day.Outcome],
    *,
    command: str,
    facts: typing.Mapping[str, str],
) -> str:
    """The page."""
    lines = [
        "# Simulation of delivery",
        "",
        f"`{command}` wrote this page; [README.md](README.md) says what is real and what is simulated.",
        "",
        *report.markdown_table([("fact", "value"), *facts.items()]),
    ]
    for name, outcome in outcomes.items():
        lines += ["", f"## {name}", "", outcome.day.about, "", *_summary(outcome), "", *_kinds(outcome)]
        lines += ["", f"![Queue and connections]({name}.svg)"]
    if by_hosts:
        lines += ["", "## Number of hosts", "", *_by_hosts(by_hosts), "", "![Time to delivery](hosts.svg)"]
    return "\n".join(lines) + "\n"


def _summary(outcome: day.Outcome) -> list[str]:
    seen, one = outcome.seen, outcome.day
    rows = [
        ("messages, accounts, hosts", f"{outcome.accepted:,}, {one.accounts:,}, {one.hosts}"),
        ("ended", ", ".join(f"{status} {count:,}" for status, count in sorted(seen.ended.items()))),
        ("queued at the end", f"{outcome.queued:,}"),
        ("delivered twice, after a crash", f"{outcome.duplicates:,}"),
        ("refused: over the rate, account suspended", f"{seen.refused['rate']:,}, {seen.refused['suspended']:,}"),
        ("fairness (Jain's index)", f"{outcome.fairness:.4f}"),
        ("attempts, of which deferred", f"{seen.attempts.total():,}, {seen.wasted.total():,}"),
        ("most connections", f"{max((sample.connections for sample in seen.samples), default=0):,}"),
        ("longest queue", f"{max((sample.queued for sample in seen.samples), default=0):,}"),
        ("busiest host, database server", f"{_load(outcome)}"),
        ("violations", ", ".join(outcome.violations) or "none"),
    ]
    rows += [(f"suspended: {name}", f"at {_clock(at)}") for name, at in outcome.suspended.items()]
    rows += [(f"recovery: {outage.kind}", _recovery(outcome, outage)) for outage in one.outages]
    return list(report.markdown_table([("figure", "value"), *rows]))


def _load(outcome: day.Outcome) -> str:
    host = outcome.host_seconds / outcome.day.seconds
    server = outcome.server_seconds / outcome.day.seconds
    return f"{host:.1%} and {server:.1%} of a core, on average"


def _recovery(outcome: day.Outcome, outage: scenario.Outage) -> str:
    """How long after an outage the queue is back to its length before it."""
    before = max((one.in_outage for one in outcome.seen.samples if one.at <= outage.begins), default=0)
    end = outage.begins + outage.seconds
    at = outcome.seen.drained_at(since=end, queued=before)
    return "not within the simulation" if math.isnan(at) else f"{(at - end) / 60:.0f} minutes after its end"


def _kinds(outcome: day.Outcome) -> list[str]:
    seen = outcome.seen
    rows = [("destinations", "delivered", "p50 s", "p90 s", "p99 s", "attempts", "deferred")]
    for kind in outcome.day.kinds:
        times = seen.by_kind.get(kind.name, measurements.Times())
        waits = [_seconds(times.percentile(part)) for part in (0.5, 0.9, 0.99)]
        attempts, wasted = seen.attempts[kind.name], seen.wasted[kind.name]
        rows.append((kind.name, f"{times.count:,}", waits[0], waits[1], waits[2], f"{attempts:,}", f"{wasted:,}"))
    return list(report.markdown_table(rows))


def _by_hosts(outcomes: typing.Sequence[day.Outcome]) -> list[str]:
    rows = [
        (
            "hosts",
            "messages",
            "google p50 s",
            "google p99 s",
            "small domains p99 s",
            "longest queue",
            "busiest host, database server",
        )
    ]
    for one in outcomes:
        google, small = one.seen.by_kind["google"], one.seen.by_kind["small domains"]
        rows.append(
            (
                f"{one.day.hosts}",
                f"{one.accepted:,}",
                _seconds(google.percentile(0.5)),
                _seconds(google.percentile(0.99)),
                _seconds(small.percentile(0.99)),
                f"{max(sample.queued for sample in one.seen.samples):,}",
                _load(one),
            )
        )
    return list(report.markdown_table(rows))


def chart(name: str, outcome: day.Outcome) -> plots.Lines:
    """The queue and the connections over the hours."""
    step = max(1, len(outcome.seen.samples) // 24)
    samples = outcome.seen.samples[::step]
    return plots.Lines(
        title=f"{name}: queued recipients and open connections",
        unit="recipients, connections",
        steps_title="time of day",
        steps=tuple("" if place % 4 else _clock(one.at) for place, one in enumerate(samples)),
        lines=(
            plots.Line(label="queued recipients", values=tuple(float(one.queued) for one in samples)),
            plots.Line(label="connections", values=tuple(float(one.connections) for one in samples)),
        ),
        shows_values=False,
    )


def hosts_chart(outcomes: typing.Sequence[day.Outcome]) -> plots.Bars:
    """The p99 of the time to delivery by hosts."""
    panels = []
    for kind in ("google", "microsoft", "small domains"):
        waits = [(one.day.hosts, one.seen.by_kind[kind].percentile(0.99)) for one in outcomes]
        bars = tuple(
            plots.Bar(label=f"{hosts} hosts" if hosts > 1 else "1 host", value=wait, text=_seconds(wait))
            for hosts, wait in waits
        )
        panels.append(plots.Panel(title=kind, bars=bars))
    return plots.Bars(title="Time to delivery, p99", unit="seconds: less is better", panels=tuple(panels))


def _seconds(value: float) -> str:
    return "" if math.isnan(value) else f"{value:,.1f}"


def _clock(seconds: float) -> str:
    hours, rest = divmod(round(seconds), int(HOUR_SECONDS))
    return f"{hours:02d}:{rest // 60:02d}"
