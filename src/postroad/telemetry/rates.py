"""What a process does in a second: the growth of its counters since it was last asked, with those of its frontends."""

import time
from collections.abc import Callable

from postroad.model import mail
from postroad.model.bounces import disposition
from postroad.telemetry import metrics


class RateMeter:
    """Remembers the counters of the last reading."""

    def __init__(self, counted: metrics.Metrics, clock: Callable[[], float] = time.monotonic) -> None:
        self._counted = counted
        self._clock = clock
        self._at, self._before = clock(), _totals(counted)

    def read(self) -> dict[str, float]:
        """The rates since the last reading, by name."""
        now, totals = self._clock(), _totals(self._counted)
        seconds = max(now - self._at, 0.001)
        rates = {name: round((total - self._before[name]) / seconds, 2) for name, total in totals.items()}
        self._at, self._before = now, totals
        # A frontend that was started anew counts from the beginning.
        return {name: max(0.0, rate) for name, rate in rates.items()}


def _totals(counted: metrics.Metrics) -> dict[str, float]:
    accepted = counted.rows_of(counted.accepted)
    recipients = counted.rows_of(counted.recipients)
    attempts = counted.rows_of(counted.attempts)
    totals = {"accepted": sum(value for (value,) in accepted.values())}
    for status in mail.FINAL:
        totals[str(status)] = sum(value for (_, verdict), (value,) in recipients.items() if verdict == status)
    totals["deferred"] = sum(value for labels, (value,) in attempts.items() if labels[0] == disposition.Verdict.RETRY)
    return totals
