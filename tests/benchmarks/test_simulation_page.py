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
