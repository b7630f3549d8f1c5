"""Counts the TLS results of sessions for reports to recipient domains (TLS-RPT, RFC 8460).

A session is counted for the domain of the message that opened it. Counting is a number in a dictionary; once a minute
the numbers are added to the store in batches. A crash loses those of the last minute, a database outage those of its
duration: a report is statistics. What cannot be counted within the bounds is left out.
"""

import asyncio
import functools
from collections.abc import Mapping
from typing import Final

from postroad import context
from postroad.delivery import routing
from postroad.model.units import times
from postroad.network.smtp import smtp_connection
from postroad.protocol.reports import tls_report
from postroad.services import throttled_batches
from postroad.services.operations import tls_reports
from postroad.storage.engine import store
from postroad.storage.mail import tls_policies as stored_reports
from postroad.telemetry import logs

FLUSH_SECONDS: Final = 60.0
# Per process and minute; a few megabytes.
MAX_DOMAINS: Final = 5_000
MAX_RESULTS: Final = stored_reports.MAX_RESULTS
# Domains in one transaction: it stays short.
BATCH_DOMAINS: Final = 200


class TlsResults:
    """The results that this process has counted."""

    def __init__(self, ctx: context.Context, log: logs.Logger) -> None:
        self._ctx = ctx
        self._log = log
        self._counts: dict[tuple[int, str], dict[tls_report.Result, int]] = {}

    def add(self, domain: str, result: tls_report.Result) -> None:
        key = times.day_of(self._ctx.clock()), domain
        counted = self._counts.get(key)
        if counted is None:
            if len(self._counts) >= MAX_DOMAINS:
                return
            counted = self._counts[key] = {}
        if result in counted or len(counted) < MAX_RESULTS:
            counted[result] = counted.get(result, 0) + 1

    def connected(self, host: routing.Host, connection: smtp_connection.SmtpConnection) -> None:
        self._add_session(host, connection.tls_failure, connection.source_address)

    def failed(self, host: routing.Host, problem: smtp_connection.ConnectFailed) -> None:
        """Count a session that TLS prevented; other failures say nothing about TLS."""
        if problem.tls_failure is not None:
            self._add_session(host, problem.tls_failure, problem.source_address)

    def _add_session(self, host: routing.Host, failure: tls_report.FailureType | None, source_address: str) -> None:
        if host.counted_for is None:
            return
        domain, policy = host.counted_for
        if failure is None:
            self.add(domain, tls_report.Result(policy))
        else:
            self.add(domain, tls_report.Result(policy, failure, source_address, host.name, host.address))

    async def run_forever(self) -> None:
        """Store the counts every minute, until cancelled."""
        while True:
            await asyncio.sleep(FLUSH_SECONDS)
            await self.flush()

    async def flush(self) -> None:
        counts, self._counts = self._counts, {}
        days: dict[int, dict[str, Mapping[tls_report.Result, int]]] = {}
        for (day, domain), results in counts.items():
            if not tls_reports.is_late(day, now=self._ctx.clock()):
                days.setdefault(day, {})[domain] = results
        try:
            for day, domains in days.items():
                names = sorted(domains)
                for at in range(0, len(names), BATCH_DOMAINS):
                    batch = {name: domains[name] for name in names[at : at + BATCH_DOMAINS]}
                    due_at = {name: tls_reports.due_at(day, entropy=self._ctx.entropy) for name in batch}
                    add = functools.partial(stored_reports.add_sessions, day=day, sessions=batch, due_at=due_at)
                    await throttled_batches.run_batch(self._ctx, add)
        except store.UNAVAILABLE as error:
            self._log.warning("tls_results_lost", error=error.message)
