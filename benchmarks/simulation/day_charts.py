"""The charts of simulated days: values in, charts out."""

import itertools
import typing

from benchmarks import plots
from benchmarks.simulation import measurements, outcome

# Points of a line over a day: one for each half hour.
POINTS = 48
MAX_LABELS, LABEL_SECONDS = 10, (60, 300, 900, 1800, 3600, 10_800)
HOUR_SECONDS = 3600.0
# What is shown of an outage, before it begins and after it ends.
BEFORE_SECONDS, AFTER_SECONDS = HOUR_SECONDS, 2 * HOUR_SECONDS
MIN_DEFERRED = 0.01
# Kinds whose mail takes as long as it takes, whatever a scheduler does.
SLOW_KINDS = ("greylisting", "tarpits", "silent hosts")

Outcomes = typing.Mapping[str, outcome.Outcome]


def by_provider(days: Outcomes) -> plots.Chart:
    """The p99 of the time to delivery, for each provider on each day."""
    names = [name for name in next(iter(days.values())).kinds if name not in SLOW_KINDS]
    panels = [
        plots.Panel(title=kind, bars=tuple(_wait(name, day.kinds[kind].waits.p99) for name, day in days.items()))
        for kind in names
    ]
    return _waits("Time to delivery by provider, p99", panels)


def by_account(days: Outcomes) -> plots.Chart:
    """The p90 of the time to delivery, for accounts of each size on each day."""
    sizes = next(iter(days.values())).by_size
    panels = [
        plots.Panel(
            title=f"accounts {size}, by size",
            bars=tuple(_wait(name, day.by_size[size].p90) for name, day in days.items() if size in day.by_size),
        )
        for size in sizes
    ]
    return _waits("Time to delivery by account, p90", panels)


def fairness(days: Outcomes) -> plots.Chart:
    """Jain's index, and the account that got least."""
    index = tuple(_share(name, day.fairness) for name, day in days.items())
    least = tuple(_share(name, day.worst_prompt) for name, day in days.items())
    return plots.Bars(
        title="Fairness between accounts",
        unit="of the part of an account's mail that was delivered within a minute: 1 is best",
        panels=(
            plots.Panel(title="Jain's index", bars=index),
            plots.Panel(title="the account that got least", bars=least),
        ),
    )


def deferred(days: Outcomes) -> plots.Chart:
    """The part of attempts that were in vain, where it is not small."""
    panels = []
    for name, day in days.items():
        parts = {kind: found.deferred / found.attempts for kind, found in day.kinds.items() if found.attempts}
        bars = tuple(
            plots.Bar(label=kind, value=100 * part, text=f"{part:.1%}")
            for kind, part in parts.items()
            if part >= MIN_DEFERRED
        )
        whole = day.deferred / max(1, day.attempts)
        panels.append(plots.Panel(title=f"{name}: {whole:.1%} in all", bars=bars))
    return plots.Bars(title="Deferred attempts", unit="% of attempts: less is better", panels=tuple(panels))


def connections(days: Outcomes) -> plots.Chart:
    """Open connections over the day."""
    return _over_day(
        "Open connections", "connections of all hosts", days, lambda sample: sum(sample.connections.values())
    )


def queued(days: Outcomes) -> plots.Chart:
    """The queue over the day."""
    return _over_day("The queue", "recipients", days, lambda sample: sum(sample.queued.values()))


def hostile(one: outcome.Outcome) -> plots.Chart:
    """Connections to tarpits and to others, from before the first hostile sender begins."""
    begins = min(sender.begins for sender in one.day.senders)
    shown = [sample for sample in one.samples if begins - BEFORE_SECONDS <= sample.at <= begins + AFTER_SECONDS]
    tarpits = [float(sample.connections.get("tarpits", 0)) for sample in shown]
    others = [float(sum(sample.connections.values())) - slow for sample, slow in zip(shown, tarpits, strict=True)]
    return plots.Lines(
        title="Connections while hostile senders send",
        unit="connections of all hosts",
        steps_title="time of day",
        steps=_clocks([sample.at for sample in shown]),
        lines=(
            plots.Line(label="to tarpits", values=tuple(tarpits)),
            plots.Line(label="to other destinations", values=tuple(others)),
        ),
        shows_values=False,
    )


def recovery(one: outcome.Outcome) -> plots.Chart:
    """The queue and the attempts of the destinations with an outage, from before it until after."""
    outage = one.day.outages[0]
    first, last = outage.begins - BEFORE_SECONDS, outage.begins + outage.seconds + AFTER_SECONDS
    shown = [sample for sample in one.samples if first <= sample.at <= last]
    pairs = list(itertools.pairwise(shown))
    attempts = [after.attempts.get(outage.kind, 0) - before.attempts.get(outage.kind, 0) for before, after in pairs]
    minutes = (shown[1].at - shown[0].at) / 60
    samples = [after for _, after in pairs]
    return plots.Lines(
        title=f"An outage of {outage.seconds / HOUR_SECONDS:g} hours: {outage.kind}",
        unit="recipients queued for it, and attempts",
        steps_title="time of day",
        steps=_clocks([sample.at for sample in samples]),
        lines=(
            plots.Line(label="queued", values=tuple(float(sample.queued.get(outage.kind, 0)) for sample in samples)),
            plots.Line(label=f"attempts in {minutes:g} minutes", values=tuple(map(float, attempts))),
        ),
        shows_values=False,
    )


def by_hosts(days: typing.Sequence[outcome.Outcome]) -> plots.Chart:
    """The p99 of the time to delivery by the number of hosts."""
    panels = [
        plots.Panel(
            title=kind,
            bars=tuple(_wait(_hosts(day.day.hosts), day.kinds[kind].waits.p99) for day in days),
        )
        for kind in days[0].kinds
        if kind not in SLOW_KINDS
    ]
    return _waits("Time to delivery by the number of hosts, p99", panels)


def _hosts(count: int) -> str:
    return f"{count} hosts" if count > 1 else "1 host"


def _waits(title: str, panels: typing.Sequence[plots.Panel]) -> plots.Chart:
    unit = "seconds on a logarithmic scale: less is better"
    return plots.Bars(title=title, unit=unit, panels=tuple(panels), is_logarithmic=True)


def _wait(label: str, seconds: float | None) -> plots.Bar:
    return plots.Bar(label=label, value=seconds or 0.0, text="" if seconds is None else f"{seconds:,.1f}")


def _share(label: str, share: float | None) -> plots.Bar:
    return plots.Bar(label=label, value=share or 0.0, text="" if share is None else f"{share:.4f}")


def _over_day(title: str, unit: str, days: Outcomes, value: typing.Callable[[measurements.Sample], int]) -> plots.Chart:
    """A line for each day: the most in each half hour."""
    length = max(day.day.seconds for day in days.values()) / POINTS
    ends = [length * (place + 1) for place in range(POINTS)]
    return plots.Lines(
        title=title,
        unit=f"{unit}: the most in each {length / 60:g} minutes",
        steps_title="time of day",
        steps=_clocks(ends),
        lines=tuple(
            plots.Line(label=name, values=tuple(_most(day.samples, value, end - length, end) for end in ends))
            for name, day in days.items()
        ),
        shows_values=False,
    )


def _most(
    samples: typing.Iterable[measurements.Sample],
    value: typing.Callable[[measurements.Sample], int],
    after: float,
    until: float,
) -> float | None:
    return max((float(value(sample)) for sample in samples if after < sample.at <= until), default=None)


def _clocks(times: typing.Sequence[float]) -> tuple[str, ...]:
    """The labels of an axis, at round times."""
    span = times[-1] - times[0]
    step = next((seconds for seconds in LABEL_SECONDS if span / seconds <= MAX_LABELS), LABEL_SECONDS[-1])
    return tuple("" if round(at) % step else clock(at) for at in times)


def clock(seconds: float) -> str:
    """A time of day."""
    hours, rest = divmod(round(seconds), int(HOUR_SECONDS))
    return f"{hours:02d}:{rest // 60:02d}"
