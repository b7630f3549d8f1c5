"""Waits until all webhooks are delivered and recorded, then compares the counts of the endpoints and the store.

The counts of the endpoints are polled, because that is cheap; the store is queried only at the end.
"""

import dataclasses
import time
import typing

from benchmarks import webhook_backlog
from benchmarks.injectors import injection
from benchmarks.peers import stores, webhook_server, webhook_sink
from postroad.protocol.signatures import webhook_signature

POLL_SECONDS = 0.005
# Longer than the five seconds that an attempt may take.
STALL_SECONDS = 30.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class WebhookRound:
    """A round that is going on: the pile of `each` events for every endpoint, of which the first ones are `healthy`.

    If one is `hanging`, it is the last, and its events are not waited for.
    """

    healthy: int
    hanging: bool
    sink: webhook_sink.Sink
    store: stores.Store
    pile: webhook_backlog.WebhookBacklog
    each: int

    @property
    def total(self) -> int:
        """The number of events for healthy endpoints."""
        return self.each * self.healthy

    def delivered(self) -> int:
        """The number of events they have received."""
        return sum(self.sink.events()[: self.healthy])

    def unfinished(self) -> int:
        """The number of deliveries not recorded as final; queried only at the end, because it loads the store."""
        last = self.pile.ids[-1] if self.hanging else ""
        counted = (
            f"(SELECT COUNT(*) FROM webhook_deliveries WHERE state = '{state}' AND webhook_id <> '{last}')"  # noqa: S608
            for state in ("ready", "waiting")
        )
        return self.store.ask(f"SELECT {' + '.join(counted)}")

    def wait(self, *, delivered: int) -> None:
        """Wait until this many events are delivered, and for all of them, until they are recorded."""
        seen, give_up_at = -1, time.monotonic() + STALL_SECONDS
        while (count := self.delivered()) < delivered or (delivered == self.total and self.unfinished()):
            if count > seen:
                seen, give_up_at = count, time.monotonic() + STALL_SECONDS
            if time.monotonic() > give_up_at:
                raise TimeoutError(
                    f"{count} of {delivered} events delivered, {self.unfinished()} not final, and no progress "
                    f"for {STALL_SECONDS:.0f} s"
                )
            time.sleep(POLL_SECONDS)

    def latency(self) -> injection.Latency:
        """How long attempts took that were answered."""
        p50, p99, worst = (
            self.store.ask(
                "SELECT duration FROM webhook_attempts WHERE status_code = 200 "  # noqa: S608 - our own number
                f"ORDER BY duration LIMIT 1 OFFSET {int((self.total - 1) * part)}"
            )
            / 1000
            for part in (0.5, 0.99, 1.0)
        )
        return injection.Latency(p50=p50, p99=p99, worst=worst)

    def differences(self) -> list[str]:
        """Where the counts disagree."""
        events = self.sink.events()[: self.healthy]
        found = [
            f"endpoint {number} got {count} events, but {self.each} are its own"
            for number, count in enumerate(events)
            if count != self.each
        ]
        succeeded = self.store.ask("SELECT COUNT(*) FROM webhook_deliveries WHERE state = 'succeeded'")
        attempts = self.store.ask("SELECT COUNT(*) FROM webhook_attempts WHERE status_code = 200")
        tries = self.store.ask("SELECT COUNT(*) FROM webhook_attempts WHERE status_code <> 200 OR error IS NOT NULL")
        if succeeded != self.total or attempts != self.total:
            found.append(f"{succeeded} events succeeded and {attempts} attempts were answered, but {self.total} should")
        if tries and not self.hanging:
            found.append(f"{tries} attempts failed, but none should")
        return found


def signature_differences(
    samples: typing.Sequence[webhook_server.Sample], *, secrets: typing.Sequence[str]
) -> list[str]:
    """Signatures that an endpoint would have rejected; having no samples is a difference too."""
    refusals = (
        webhook_signature.why_refused(sample.signature, sample.body, secret=secrets[sample.endpoint], now=sample.at)
        for sample in samples
    )
    found = sorted({refusal for refusal in refusals if refusal is not None})
    return found if samples else ["no request was kept, so no signature was verified"]
