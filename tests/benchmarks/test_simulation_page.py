"""The page of simulated days: a section and a chart for each question, with the figures of the days."""

import xml.etree.ElementTree as ET

import msgspec
import pytest

from benchmarks import plots
from benchmarks.simulation import day, outcome, random_days, results_page, scenario

GOOGLE_OUTAGE = scenario.Outage(kind="google", begins=20.0, seconds=60.0)
TARPIT_OWNER = scenario.Sender(
    name="tarpit-owner", begins=3.0, share=0.1, per_second=10.0, kind="tarpits", is_hostile=True
)


@pytest.fixture(scope="module", name="runs")
def _runs() -> dict[str, outcome.Run]:
    plain = msgspec.structs.replace(random_days.make(2), senders=(), outages=(), crashes=(), hosts=1)
    days = {
        "ordinary": plain,
        "outage": msgspec.structs.replace(plain, name="outage", outages=(GOOGLE_OUTAGE,)),
        "hostile": msgspec.structs.replace(plain, name="hostile", senders=(TARPIT_OWNER,)),
    }
    return {
        name: outcome.Run(outcome=day.run(one, seed=2), cpu_seconds=1.0, mebibytes=80, facts={"processor": "abc"})
        for name, one in days.items()
    }


def test_every_picture_of_the_page_is_drawn(runs: dict[str, outcome.Run]) -> None:
    by_hosts = [runs["ordinary"]]
    page = results_page.page(runs, by_hosts)
    charts = {name: plots.svg(chart) for name, chart in results_page.charts(runs, by_hosts).items()}
    assert {f"]({name}.svg)" in page for name in charts} == {True}
    assert page.count(".svg)") == len(charts) == 9
    for text in charts.values():
        assert ET.fromstring(text).tag.endswith("svg")  # noqa: S314 - our own


def test_the_page_names_days_and_violations(runs: dict[str, outcome.Run]) -> None:
    wrong = msgspec.structs.replace(runs["ordinary"].outcome, violations=("1.000 s: message 1 was delivered twice",))
    page = results_page.page({"ordinary": msgspec.structs.replace(runs["ordinary"], outcome=wrong)}, [])
    assert "1.000 s: message 1 was delivered twice" in page
    assert "## Recovery after an outage" not in page
    assert "## Recovery after an outage" in results_page.page(runs, [])


def test_recovery_is_when_the_queue_is_as_short_as_before(runs: dict[str, outcome.Run]) -> None:
    one = runs["outage"].outcome
    seconds = one.recovery_seconds(GOOGLE_OUTAGE)
    assert seconds is not None
    before = max(sample.queued.get("google", 0) for sample in one.samples if sample.at <= GOOGLE_OUTAGE.begins)
    after = next(sample for sample in one.samples if sample.at == GOOGLE_OUTAGE.begins + 60.0 + seconds)
    assert after.queued.get("google", 0) <= before < max(sample.queued.get("google", 0) for sample in one.samples)


def test_a_bar_of_a_logarithmic_chart_grows_with_the_power_of_its_value() -> None:
    bars = tuple(plots.Bar(label=f"{value}", value=value, text="") for value in (1.0, 100.0, 10_000.0))
    chart = plots.Bars(title="t", unit="u", panels=(plots.Panel(title="", bars=bars),), is_logarithmic=True)
    found = ET.fromstring(plots.svg(chart))  # noqa: S314 - our own
    widths = [float(one.attrib["width"]) for one in found.iter("{http://www.w3.org/2000/svg}rect")][1:]
    assert widths[2] == pytest.approx(plots.BARS_WIDTH)
    assert widths[2] - widths[1] == pytest.approx(widths[1] - widths[0], rel=0.1)
