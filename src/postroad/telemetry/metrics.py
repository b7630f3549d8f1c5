"""What the service counts about itself, in the words of Prometheus (docs/metrics.md explains each).

Counting happens on the paths that should be fast, and always on the event loop: a count is a number in a dictionary,
without a lock. The families that a scraper reads are made of them when it asks. Labels come from small closed sets:
never a domain, an address or an id.
"""

import bisect
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import prometheus_client
from prometheus_client import core, registry

from postroad import config
from postroad.model import bounce_guard, domain_records, mail, providers

CONTENT_TYPE: Final = prometheus_client.CONTENT_TYPE_LATEST
# Where an outcome has no pool: decided without an attempt, or no route was found.
NO_PROVIDER: Final = "none"
PROVIDERS: Final = config.Pools.__struct_fields__
# From a look-up in memory to the grace time of a stop.
REQUEST_SECONDS: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
# From a host next door to the timeouts of RFC 5321.
ATTEMPT_SECONDS: Final = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
# The budget of an attempt to tell a receiver is five seconds; an attempt that used it up lies just beyond.
WEBHOOK_SECONDS: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0)
# What can follow from an attempt to tell a receiver.
WEBHOOK_RESULTS: Final = ("succeeded", "retried", "failed")
# What the bounce guard does, and because of what.
GUARD_ACTIONS: Final = ("warned", "suspended")
GUARD_CAUSES: Final = tuple(bounce_guard.Cause)

Labels = tuple[str, ...]


# The numbers of one metric, for each set of labels; a histogram has several.
Rows = dict[Labels, list[float]]
# What a process has counted, by the name of the metric: for another one, which adds it to its own.
Snapshot = dict[str, Rows]
# Of what the system tells about a process, that which adds up.
ADDITIVE_PROCESS_METRICS: Final = (
    "process_cpu_seconds_total",
    "process_open_fds",
    "process_resident_memory_bytes",
    "process_virtual_memory_bytes",
)


class Counter:
    """A number that only grows, for each set of labels. `known` sets are shown before anything has happened."""

    def __init__(self, name: str, help_text: str, labels: Sequence[str] = (), known: Iterable[Labels] = ()) -> None:
        self.name, self.help, self.labels = name, help_text, labels
        self.values: dict[Labels, float] = dict.fromkeys(known if labels else [()], 0)

    def add(self, *labels: str) -> None:
        """Count one more."""
        self.values[labels] = self.values.get(labels, 0) + 1

    def rows(self) -> Rows:
        """The counts."""
        return {labels: [value] for labels, value in self.values.items()}

    def family(self, rows: Rows) -> core.Metric:
        """What a scraper reads."""
        family = core.CounterMetricFamily(self.name, self.help, labels=self.labels)
        for labels, (value,) in rows.items():
            family.add_metric(labels, value)
        return family


class Gauge:
    """A number that goes up and down; without labels it begins at 0, with labels it is shown once it is set."""

    def __init__(self, name: str, help_text: str, labels: Sequence[str] = ()) -> None:
        self.name, self.help, self.labels = name, help_text, labels
        self.values: dict[Labels, float] = {} if labels else {(): 0}

    def change(self, by: float, *labels: str) -> None:
        """More or less of it."""
        self.values[labels] = self.values.get(labels, 0) + by

    def replace(self, values: dict[Labels, float]) -> None:
        """All its values anew; those that are missing are not shown any more."""
        self.values = values

    def rows(self) -> Rows:
        """The values."""
        return {labels: [value] for labels, value in self.values.items()}

    def family(self, rows: Rows) -> core.Metric:
        """What a scraper reads."""
        family = core.GaugeMetricFamily(self.name, self.help, labels=self.labels)
        for labels, (value,) in rows.items():
            family.add_metric(labels, value)
        return family


class Histogram:
    """How many took how long, for each set of labels."""

    def __init__(self, name: str, help_text: str, labels: Sequence[str], bounds: Sequence[float]) -> None:
        self.name, self.help, self.labels = name, help_text, labels
        self._bounds = bounds
        self._counts: dict[Labels, list[int]] = {}
        self._sums: dict[Labels, float] = {}

    def observe(self, value: float, *labels: str) -> None:
        """Count one of this size."""
        counts = self._counts.get(labels)
        if counts is None:
            counts = self._counts[labels] = [0] * (len(self._bounds) + 1)
            self._sums[labels] = 0.0
        counts[bisect.bisect_left(self._bounds, value)] += 1
        self._sums[labels] += value

    def rows(self) -> Rows:
        """How many of each size, and at last the sum of the sizes."""
        return {labels: [*counts, self._sums[labels]] for labels, counts in self._counts.items()}

    def family(self, rows: Rows) -> core.Metric:
        """What a scraper reads; a bucket holds everything up to its bound."""
        family = core.HistogramMetricFamily(self.name, self.help, labels=self.labels)
        for labels, (*counts, sum_value) in rows.items():
            total, buckets = 0.0, []
            for bound, count in zip((*map(str, self._bounds), "+Inf"), counts, strict=True):
                total += count
                buckets.append((bound, total))
            family.add_metric(labels, buckets, sum_value)
        return family


class Metrics(registry.Collector):
    """Everything that one process counts. It shows what others have counted, too, as far as it is told (`others`)."""

    def __init__(self) -> None:
        self.others: dict[str, Snapshot] = {}
        outcomes = [(provider, verdict) for provider in (*PROVIDERS, NO_PROVIDER) for verdict in mail.FINAL]
        self.accepted = Counter("postroad_messages_accepted_total", "Messages on disk, by the door.", ["source"])
        self.replayed = Counter(
            "postroad_messages_replayed_total",
            "Sends that were answered as an earlier one with the same key.",
            ["source"],
        )
        self.refused = Counter(
            "postroad_messages_refused_total", "Sends that were refused, by the door and the code.", ["source", "code"]
        )
        self.recipients = Counter(
            "postroad_recipients_total", "Recipients that are final.", ["provider", "verdict"], known=outcomes
        )
        self.attempts = Counter(
            "postroad_attempts_total", "Attempts, and what followed from them.", ["verdict", "fault", "reason"]
        )
        self.attempt_seconds = Histogram(
            "postroad_attempt_seconds", "How long attempts took.", ["provider"], ATTEMPT_SECONDS
        )
        self.connections = Gauge("postroad_connections", "Connections to destinations, open or opening.")
        self.unrecorded = Gauge("postroad_results_unrecorded", "Jobs whose results are not on disk yet.")
        self.lost_leases = Counter("postroad_lost_leases_total", "Claims of recipients that a worker had not finished.")
        self.signatures = Counter("postroad_signatures_total", "DKIM signatures made.")
        self.requests = Counter("postroad_http_requests_total", "HTTP requests.", ["route", "status"])
        self.request_seconds = Histogram(
            "postroad_http_request_seconds", "How long HTTP requests took.", ["route"], REQUEST_SECONDS
        )
        self.submission_connections = Gauge("postroad_submission_connections", "Connections of clients over SMTP.")
        self.submission_sessions = Counter("postroad_submission_sessions_total", "SMTP sessions that were let in.")
        self.submission_logins = Counter(
            "postroad_submission_logins_total", "Attempts to log in over SMTP, and what came of them.", ["result"]
        )
        self.submission_seconds = Histogram(
            "postroad_submission_message_seconds",
            "How long messages over SMTP took, from their last octet to the reply.",
            [],
            REQUEST_SECONDS,
        )
        self.queue = Gauge("postroad_queue_recipients", "Recipients that are not final, by state.", ["state"])
        self.oldest = Gauge("postroad_queue_oldest_seconds", "The age of the oldest recipient in the queue.")
        self.overdue = Gauge("postroad_queue_overdue_seconds", "How long the most patient ready recipient waits.")
        self.pools = Gauge("postroad_pools", "Pools of workers that are not simply open.", ["provider", "state"])
        self.webhook_attempts = Counter(
            "postroad_webhook_attempts_total",
            "Attempts to tell receivers, and what followed from them.",
            ["result"],
            known=[(result,) for result in WEBHOOK_RESULTS],
        )
        self.webhook_seconds = Histogram(
            "postroad_webhook_attempt_seconds", "How long attempts to tell receivers took.", [], WEBHOOK_SECONDS
        )
        self.webhook_connections = Gauge("postroad_webhook_connections", "Attempts to tell receivers, under way.")
        self.webhook_backlog = Gauge(
            "postroad_webhook_deliveries", "Webhook deliveries that are not final, by state.", ["state"]
        )
        self.webhook_overdue = Gauge(
            "postroad_webhook_overdue_seconds",
            "How long the most patient ready delivery of an endpoint that is enabled waits.",
        )
        self.guard = Counter(
            "postroad_bounce_guard_total",
            "Accounts that the bounce guard has warned or suspended.",
            ["action", "cause"],
            known=[(action, cause) for action in GUARD_ACTIONS for cause in GUARD_CAUSES],
        )
        self.domain_checks = Counter(
            "postroad_domain_checks_total",
            "Records of sender domains that DNS was asked about, and what it said.",
            ["purpose", "state"],
            known=[(purpose, state) for purpose in domain_records.RecordPurpose for state in domain_records.ANSWERS],
        )
        self.store_up = Gauge("postroad_store_up", "Whether the store told about the queue: 1, or 0.")
        self._processes = _Processes(self.others)
        self._registry = prometheus_client.CollectorRegistry(auto_describe=False)
        self._registry.register(self)
        self._registry.register(self._processes)

    def collect(self) -> Iterable[core.Metric]:
        """The families, in the order of their making."""
        for member in self._members():
            yield member.family(_summed(member.name, member.rows(), self.others))

    def snapshot(self) -> Snapshot:
        """What this process has counted, and what the system tells about it; what is 0 adds nothing to anything."""
        counted = {member.name: _without_zeros(member.rows()) for member in self._members()}
        return counted | self._processes.snapshot()

    def render(self) -> bytes:
        """The text that a scraper reads."""
        return prometheus_client.generate_latest(self._registry)

    def _members(self) -> Iterable[Counter | Gauge | Histogram]:
        return (member for member in vars(self).values() if isinstance(member, (Counter, Gauge, Histogram)))


class _Processes(registry.Collector):
    """What the system tells about this process, and about the others where it adds up."""

    def __init__(self, others: Mapping[str, Snapshot]) -> None:
        self._others = others
        self._own = prometheus_client.ProcessCollector(registry=None)

    def collect(self) -> Iterable[core.Metric]:
        """The families of this process, with the others added."""
        for family in self._own.collect():
            for place, sample in enumerate(family.samples):
                ((value,),) = _summed(sample.name, {(): [sample.value]}, self._others).values()
                family.samples[place] = sample._replace(value=value)
            yield family

    def snapshot(self) -> Snapshot:
        """What adds up."""
        samples = [sample for family in self._own.collect() for sample in family.samples]
        return {sample.name: {(): [sample.value]} for sample in samples if sample.name in ADDITIVE_PROCESS_METRICS}


def _without_zeros(rows: Rows) -> Rows:
    return {labels: numbers for labels, numbers in rows.items() if any(numbers)}


def _summed(name: str, rows: Rows, others: Mapping[str, Snapshot]) -> Rows:
    for other in others.values():
        for labels, numbers in other.get(name, {}).items():
            own = rows.get(labels)
            rows[labels] = [one + more for one, more in zip(own, numbers, strict=True)] if own else numbers
    return rows


def provider_label(pool: str) -> str:
    """The label of a pool: providers have pools of their own name, and all the other pools are `others`."""
    if not pool:
        return NO_PROVIDER
    return pool if pool in PROVIDERS else providers.OTHERS
