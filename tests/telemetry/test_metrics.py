"""What the service counts: as Prometheus reads it, each process for itself, and all of it documented."""

import json
import re
from pathlib import Path

import pytest
from prometheus_client import parser

from postroad.telemetry import metrics

ROOT = Path(__file__).parent.parent.parent
DEPLOYED = [ROOT / "deploy" / "grafana" / "postroad.json", ROOT / "deploy" / "alerts.yml"]
SERIES = re.compile(r"\bpostroad_[a-z_]+")
COUNTED = list(metrics.Metrics().collect())


def samples(counted: metrics.Metrics, name: str) -> dict[tuple[str, ...], float]:
    """What a scraper reads of a series: values by the values of labels, in the order of the labels' names."""
    families = parser.text_string_to_metric_families(counted.render().decode())
    found = [one for family in families for one in family.samples if one.name == name]
    return {tuple(value for _, value in sorted(one.labels.items())): one.value for one in found}


def series() -> set[str]:
    """Every name that a query can ask for."""
    endings = {"counter": ("_total",), "gauge": ("",), "histogram": ("_bucket", "_sum", "_count")}
    return {f"{family.name}{ending}" for family in COUNTED for ending in endings[family.type]}


def test_a_counter_counts_by_its_labels() -> None:
    counted = metrics.Metrics()
    counted.refused.add("api", "forbidden")
    counted.refused.add("api", "forbidden")
    counted.refused.add("test", "rate_limited")
    assert samples(counted, "postroad_messages_refused_total") == {
        ("forbidden", "api"): 2,
        ("rate_limited", "test"): 1,
    }


def test_what_has_never_happened_is_shown_as_never_where_a_rule_has_to_notice_it() -> None:
    counted = metrics.Metrics()
    assert samples(counted, "postroad_recipients_total")["google", "delivered"] == 0
    assert samples(counted, "postroad_lost_leases_total") == {(): 0}
    assert samples(counted, "postroad_connections") == {(): 0}
    assert samples(counted, "postroad_webhook_attempts_total") == {("succeeded",): 0, ("retried",): 0, ("failed",): 0}


def test_a_gauge_goes_up_and_down_and_drops_what_is_gone() -> None:
    counted = metrics.Metrics()
    counted.connections.change(3)
    counted.connections.change(-1)
    assert samples(counted, "postroad_connections") == {(): 2}
    counted.provider_queues.replace({("google", "paused"): 1, ("others", "blocked"): 2})
    assert samples(counted, "postroad_provider_queues") == {("google", "paused"): 1, ("others", "blocked"): 2}
    counted.provider_queues.replace({("google", "slowed"): 1})
    assert samples(counted, "postroad_provider_queues") == {("google", "slowed"): 1}


def test_a_bucket_holds_everything_up_to_its_bound() -> None:
    counted = metrics.Metrics()
    for seconds in (0.05, 0.06, 0.3, 1_000.0):
        counted.attempt_seconds.observe(seconds, "google")
    buckets = {bound: value for (bound, _), value in samples(counted, "postroad_attempt_seconds_bucket").items()}
    assert [buckets[bound] for bound in ("0.01", "0.05", "0.1", "0.25", "0.5", "300.0", "+Inf")] == [
        0,
        1,
        2,
        2,
        3,
        3,
        4,
    ]
    assert samples(counted, "postroad_attempt_seconds_count") == {("google",): 4}
    assert samples(counted, "postroad_attempt_seconds_sum") == {("google",): pytest.approx(1_000.41)}


def test_bounds_only_grow() -> None:
    for bounds in (metrics.REQUEST_SECONDS, metrics.ATTEMPT_SECONDS, metrics.WEBHOOK_SECONDS):
        assert list(bounds) == sorted(set(bounds))


def test_two_processes_in_one_count_for_themselves() -> None:
    one, other = metrics.Metrics(), metrics.Metrics()
    one.signatures.add()
    assert samples(one, "postroad_signatures_total") == {(): 1}
    assert samples(other, "postroad_signatures_total") == {(): 0}


def test_the_process_has_metrics_too() -> None:
    assert samples(metrics.Metrics(), "process_resident_memory_bytes")[()] > 0


@pytest.mark.parametrize("path", DEPLOYED, ids=lambda path: path.name)
def test_boards_and_rules_ask_only_for_what_is_counted(path: Path) -> None:
    asked = set(SERIES.findall(path.read_text()))
    assert asked
    assert asked - series() == set()


def test_the_board_shows_every_metric() -> None:
    shown = set(SERIES.findall(DEPLOYED[0].read_text()))
    assert [family.name for family in COUNTED if not any(name.startswith(family.name) for name in shown)] == []


def test_the_panels_of_the_board_have_ids_and_places_of_their_own() -> None:
    panels = json.loads(DEPLOYED[0].read_text())["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels]
    assert len(set(places)) == len(places)


def test_labels_that_queries_choose_by_are_labels_of_the_metric() -> None:
    labels = {
        one.name.removesuffix("_total"): set(one.labels)
        for one in vars(metrics.Metrics()).values()
        if isinstance(one, (metrics.Counter, metrics.Gauge, metrics.Histogram))
    }
    for path in DEPLOYED:
        for name, chosen in re.findall(r"\b(postroad_[a-z_]+)\{([^}]*)\}", path.read_text().replace('\\"', '"')):
            family = re.sub(r"_(total|bucket|sum|count)$", "", name)
            assert set(re.findall(r"(\w+)[=!]", chosen)) <= labels[family], name


def test_what_others_have_counted_is_added_and_their_nothing_is_not() -> None:
    counted, other = metrics.Metrics(), metrics.Metrics()
    for one in (counted, other):
        one.refused.add("api", "forbidden")
        one.request_seconds.observe(0.3, "GET /x")
    other.connections.change(2)
    counted.oldest.replace({})  # the store is away
    counted.others["frontend 1"] = other.snapshot()
    assert samples(counted, "postroad_messages_refused_total") == {("forbidden", "api"): 2}
    assert samples(counted, "postroad_http_request_seconds_count") == {("GET /x",): 2}
    assert samples(counted, "postroad_http_request_seconds_sum") == {("GET /x",): 0.6}
    assert samples(counted, "postroad_connections") == {(): 2}
    assert samples(counted, "postroad_queue_oldest_seconds") == {}
    assert samples(counted, "process_open_fds")[()] > samples(metrics.Metrics(), "process_open_fds")[()]


# What a process does in a second, with what its frontends do.


def test_rates_are_the_growth_since_the_last_reading() -> None:
    counted, now = metrics.Metrics(), [10.0]
    counted.accepted.add("api")
    meter = metrics.RateMeter(counted, lambda: now[0])
    for _ in range(6):
        counted.accepted.add("api")
    counted.accepted.add("smtp")
    counted.recipients.add("google", "delivered")
    counted.recipients.add("others", "delivered")
    counted.recipients.add("others", "bounced")
    counted.attempts.add("retry", "rate", "greylisted")
    counted.attempts.add("delivered", "", "accepted")
    counted.others["frontend"] = {"postroad_messages_accepted_total": {("api",): [3]}}
    now[0] += 2
    measured = meter.read()
    assert {name: rate for name, rate in measured.items() if rate} == {
        "accepted": 5.0,
        "delivered": 1.0,
        "bounced": 0.5,
        "deferred": 0.5,
    }
    now[0] += 2
    assert set(meter.read().values()) == {0.0}


def test_a_frontend_that_was_started_anew_makes_no_rate_negative() -> None:
    counted, now = metrics.Metrics(), [10.0]
    counted.others["frontend"] = {"postroad_messages_accepted_total": {("api",): [300]}}
    meter = metrics.RateMeter(counted, lambda: now[0])
    counted.others.clear()
    now[0] += 1
    assert meter.read()["accepted"] == 0.0
