"""Prometheus metrics; docs/metrics.md documents each.

Hot paths count, always on the event loop: a count is a number in a dictionary, without a lock. Metric families are
built when they are scraped. Labels come from small closed sets, never a domain, an address or an id.
"""

import bisect
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import prometheus_client
from prometheus_client import core, registry

from postroad.model.bounces import bounce_guard, disposition
from postroad.model.delivery import providers
from postroad.model.domains import domain_records
from postroad.model.mail import statuses

CONTENT_TYPE: Final = prometheus_client.CONTENT_TYPE_LATEST
# The value of a label that does not apply, such as the route of an unknown path.
NONE: Final = "none"
# From a lookup in memory to the grace period.
REQUEST_SECONDS: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
# From a nearby host to the timeouts of RFC 5321 section 4.5.3.2.
ATTEMPT_SECONDS: Final = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
# A webhook attempt times out after 5 seconds; one that does is counted just above.
WEBHOOK_SECONDS: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0)
# The results of a webhook attempt.
WEBHOOK_RESULTS: Final = ("succeeded", "retried", "failed")
# The results of sending a TLS report.
TLS_REPORT_RESULTS: Final = ("sent", "retried", "failed")
# The actions of the bounce guard and their causes.
GUARD_ACTIONS: Final = ("warned", "suspended")
GUARD_CAUSES: Final = tuple(bounce_guard.Trigger)

Labels = tuple[str, ...]
# The numbers of one metric, by its labels; a histogram has several.
Rows = dict[Labels, list[float]]
# The metrics of one process by name, to be added up by another.
Snapshot = dict[str, Rows]
# Process metrics that can be added up over processes.
ADDITIVE_PROCESS_METRICS: Final = (
    "process_cpu_seconds_total",
    "process_open_fds",
    "process_resident_memory_bytes",
    "process_virtual_memory_bytes",
)


class Counter:
    """A number that only grows, by labels. `known` labels are exported as 0 from the start."""

    def __init__(self, name: str, help_text: str, labels: Sequence[str] = (), known: Iterable[Labels] = ()) -> None:
        self.name, self.help, self.labels = name, help_text, labels
        self.values: dict[Labels, float] = dict.fromkeys(known if labels else [()], 0)

    def add(self, *labels: str, count: int = 1) -> None:
        self.values[labels] = self.values.get(labels, 0) + count

    def rows(self) -> Rows:
        return {labels: [value] for labels, value in self.values.items()}

    def family(self, rows: Rows) -> core.Metric:
        family = core.CounterMetricFamily(self.name, self.help, labels=self.labels)
        for labels, (value,) in rows.items():
            family.add_metric(labels, value)
        return family


class Gauge:
    """A number that goes up and down. Without labels it starts at 0; with labels it is exported once set."""

    def __init__(self, name: str, help_text: str, labels: Sequence[str] = ()) -> None:
        self.name, self.help, self.labels = name, help_text, labels
        self.values: dict[Labels, float] = {} if labels else {(): 0}

    def change(self, by: float, *labels: str) -> None:
        self.values[labels] = self.values.get(labels, 0) + by

    def replace(self, values: dict[Labels, float]) -> None:
        """Replace all values; labels that are missing are no longer exported."""
        self.values = values

    def rows(self) -> Rows:
        return {labels: [value] for labels, value in self.values.items()}

    def family(self, rows: Rows) -> core.Metric:
        family = core.GaugeMetricFamily(self.name, self.help, labels=self.labels)
        for labels, (value,) in rows.items():
            family.add_metric(labels, value)
        return family


class Histogram:
    def __init__(self, name: str, help_text: str, labels: Sequence[str], bounds: Sequence[float]) -> None:
        self.name, self.help, self.labels = name, help_text, labels
        self._bounds = bounds
        self._counts: dict[Labels, list[int]] = {}
        self._sums: dict[Labels, float] = {}

    def observe(self, value: float, *labels: str) -> None:
        counts = self._counts.get(labels)
        if counts is None:
            counts = self._counts[labels] = [0] * (len(self._bounds) + 1)
            self._sums[labels] = 0.0
        counts[bisect.bisect_left(self._bounds, value)] += 1
        self._sums[labels] += value

    def rows(self) -> Rows:
        """The count of each bucket, followed by the sum of the values."""
        return {labels: [*counts, self._sums[labels]] for labels, counts in self._counts.items()}

    def family(self, rows: Rows) -> core.Metric:
        """The family to export, with cumulative buckets."""
        family = core.HistogramMetricFamily(self.name, self.help, labels=self.labels)
        for labels, (*counts, sum_value) in rows.items():
            total, buckets = 0.0, []
            for bound, count in zip((*map(str, self._bounds), "+Inf"), counts, strict=True):
                total += count
                buckets.append((bound, total))
            family.add_metric(labels, buckets, sum_value)
        return family


class Metrics(registry.Collector):
    """The metrics of one process. It also exports the snapshots of other processes in `others`, added up."""

    def __init__(self) -> None:
        self.others: dict[str, Snapshot] = {}
        outcomes = [
            (provider, verdict)
            for provider in (*providers.PROVIDERS, providers.NO_PROVIDER)
            for verdict in statuses.FINAL
        ]
        self.accepted = Counter("postroad_messages_accepted_total", "Messages accepted, by source.", ["source"])
        self.replayed = Counter(
            "postroad_messages_replayed_total",
            "Send requests answered with the result of an earlier one with the same idempotency key.",
            ["source"],
        )
        self.refused = Counter(
            "postroad_messages_refused_total", "Send requests refused, by source and error code.", ["source", "code"]
        )
        self.recipients = Counter(
            "postroad_recipients_total", "Recipients with a final status.", ["provider", "verdict"], known=outcomes
        )
        self.attempts = Counter(
            "postroad_attempts_total", "Delivery attempts by verdict, fault and reason.", ["verdict", "fault", "reason"]
        )
        self.source_attempts = Counter(
            "postroad_source_attempts_total",
            "Delivery attempts by source address, provider, verdict and reason.",
            ["source", "provider", "verdict", "reason"],
        )
        self.attempt_seconds = Histogram(
            "postroad_attempt_seconds", "Duration of delivery attempts.", ["provider"], ATTEMPT_SECONDS
        )
        self.connections = Gauge("postroad_connections", "Outbound SMTP connections, open or opening.")
        self.unrecorded = Gauge("postroad_results_unrecorded", "Delivery results not stored yet.")
        self.lost_leases = Counter(
            "postroad_lost_leases_total", "Recipients claimed again after a worker lost its lease."
        )
        self.signatures = Counter("postroad_signatures_total", "DKIM signatures computed.")
        self.requests = Counter("postroad_http_requests_total", "HTTP requests.", ["route", "status"])
        self.request_seconds = Histogram(
            "postroad_http_request_seconds", "Duration of HTTP requests.", ["route"], REQUEST_SECONDS
        )
        self.submission_connections = Gauge("postroad_submission_connections", "SMTP client connections.")
        self.submission_sessions = Counter("postroad_submission_sessions_total", "SMTP sessions accepted.")
        self.submission_logins = Counter(
            "postroad_submission_logins_total", "SMTP authentication attempts by result.", ["result"]
        )
        self.submission_seconds = Histogram(
            "postroad_submission_message_seconds",
            "Duration from the last octet of an SMTP message to the reply.",
            [],
            REQUEST_SECONDS,
        )
        self.queue = Gauge("postroad_queue_recipients", "Queued recipients by state.", ["state"])
        self.oldest = Gauge("postroad_queue_oldest_seconds", "Age of the oldest queued recipient.")
        self.overdue = Gauge("postroad_queue_overdue_seconds", "Longest time that a ready recipient has been due.")
        self.provider_queues = Gauge(
            "postroad_provider_queues", "Provider queues that are slowed, paused or blocked.", ["provider", "state"]
        )
        self.webhook_attempts = Counter(
            "postroad_webhook_attempts_total",
            "Webhook attempts by result.",
            ["result"],
            known=[(result,) for result in WEBHOOK_RESULTS],
        )
        self.webhook_seconds = Histogram(
            "postroad_webhook_attempt_seconds", "Duration of webhook attempts.", [], WEBHOOK_SECONDS
        )
        self.webhook_connections = Gauge("postroad_webhook_connections", "Webhook attempts in progress.")
        self.webhook_backlog = Gauge("postroad_webhook_deliveries", "Pending webhook deliveries by state.", ["state"])
        self.webhook_overdue = Gauge(
            "postroad_webhook_overdue_seconds",
            "Longest time that a ready delivery to an enabled endpoint has been due.",
        )
        self.guard = Counter(
            "postroad_bounce_guard_total",
            "Accounts warned or suspended by the bounce guard.",
            ["action", "cause"],
            known=[(action, cause) for action in GUARD_ACTIONS for cause in GUARD_CAUSES],
        )
        self.domain_checks = Counter(
            "postroad_domain_checks_total",
            "DNS records of sender domains checked, by result.",
            ["purpose", "state"],
            known=[(purpose, state) for purpose in domain_records.RecordPurpose for state in domain_records.ANSWERS],
        )
        self.tls_reports = Counter(
            "postroad_tls_reports_total",
            "TLS reports to recipient domains, by transport and result.",
            ["transport", "result"],
            known=[(transport, result) for transport in ("https", "mail") for result in TLS_REPORT_RESULTS],
        )
        self.low_credits = Gauge(
            "postroad_accounts_low_credits", "Active accounts with fewer credits than they used in the last three days."
        )
        self.stored_bytes = Gauge(
            "postroad_stored_bytes", "Space that queued live mail and stored test mail take.", ["mode"]
        )
        self.near_quota = Gauge(
            "postroad_accounts_near_quota", "Accounts whose live or test mail uses at least 80% of its storage quota."
        )
        self.checks = Gauge(
            "postroad_check", "Checks of the installation: 0 ok, 1 warning, 2 error. See `postroad doctor`.", ["name"]
        )
        self.certificates = Gauge(
            "postroad_certificate_expiry_seconds", "Time until the certificate of a listener expires.", ["listener"]
        )
        self.database_bytes = Gauge("postroad_database_bytes", "Size of the database.")
        self.database_free_bytes = Gauge(
            "postroad_database_free_bytes", "Bytes of the SQLite file that are free for new rows."
        )
        self.disk_bytes = Gauge("postroad_disk_bytes", "Size of the file system of the SQLite file.")
        self.disk_free_bytes = Gauge("postroad_disk_free_bytes", "Free bytes of the file system of the SQLite file.")
        self.build_info = Gauge("postroad_build_info", "1, with the version of Postroad.", ["version"])
        self.store_up = Gauge("postroad_store_up", "1 if the queue could be read from the store, 0 otherwise.")
        self._processes = _Processes(self.others)
        self._registry = prometheus_client.CollectorRegistry(auto_describe=False)
        self._registry.register(self)
        self._registry.register(self._processes)

    def collect(self) -> Iterable[core.Metric]:
        """All families, in order of definition."""
        for member in self._members():
            yield member.family(_summed(member.name, member.rows(), self.others))

    def rows_of(self, counter: Counter) -> Rows:
        """The counts of a counter, with those of other processes."""
        return _summed(counter.name, counter.rows(), self.others)

    def snapshot(self) -> Snapshot:
        """The metrics of this process, without zeros."""
        counted = {member.name: _without_zeros(member.rows()) for member in self._members()}
        return counted | self._processes.snapshot()

    def render(self) -> bytes:
        """The metrics in Prometheus text format."""
        return prometheus_client.generate_latest(self._registry)

    def _members(self) -> Iterable[Counter | Gauge | Histogram]:
        return (member for member in vars(self).values() if isinstance(member, (Counter, Gauge, Histogram)))


class _Processes(registry.Collector):
    """Process metrics such as CPU and memory, added up over processes where possible."""

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
        """The metrics that can be added up."""
        samples = [sample for family in self._own.collect() for sample in family.samples]
        return {sample.name: {(): [sample.value]} for sample in samples if sample.name in ADDITIVE_PROCESS_METRICS}


def _without_zeros(rows: Rows) -> Rows:
    return {labels: numbers for labels, numbers in rows.items() if any(numbers)}


def _summed(name: str, rows: Rows, others: Mapping[str, Snapshot]) -> Rows:
    for other in others.values():
        for labels, numbers in other.get(name, {}).items():
            own = rows.get(labels)
            rows[labels] = [count + more for count, more in zip(own, numbers, strict=True)] if own else numbers
    return rows


class RateMeter:
    """Remembers the counters of the last reading."""

    def __init__(self, counted: Metrics, clock: Callable[[], float] = time.monotonic) -> None:
        self._counted = counted
        self._clock = clock
        self._at, self._before = clock(), _totals(counted)

    def read(self) -> dict[str, float]:
        now, totals = self._clock(), _totals(self._counted)
        seconds = max(now - self._at, 0.001)
        rates = {name: round((total - self._before[name]) / seconds, 2) for name, total in totals.items()}
        self._at, self._before = now, totals
        # A frontend that was started anew counts from the beginning.
        return {name: max(0.0, rate) for name, rate in rates.items()}


def _totals(counted: Metrics) -> dict[str, float]:
    accepted = counted.rows_of(counted.accepted)
    recipients = counted.rows_of(counted.recipients)
    attempts = counted.rows_of(counted.attempts)
    totals = {"accepted": sum(value for (value,) in accepted.values())}
    for status in statuses.FINAL:
        totals[str(status)] = sum(value for (_, verdict), (value,) in recipients.items() if verdict == status)
    totals["deferred"] = sum(value for labels, (value,) in attempts.items() if labels[0] == disposition.Verdict.RETRY)
    return totals
