"""The invariants of simulated days can fail: a scheduler that is broken on purpose violates them."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from benchmarks.simulation import day, outcome, queue_table, random_days
from postroad.delivery import dispatcher, provider_queue, recorder
from postroad.mail.results import outcomes
from postroad.model.bounces import disposition
from postroad.model.delivery import adaptive_rate
from postroad.protocol.smtp import values
from postroad.storage.mail import queue

Break = Callable[[pytest.MonkeyPatch], None]


def _day(seed: int) -> outcome.Outcome:
    return day.run(random_days.make(seed), seed=seed)


def _keep_ready(patch: pytest.MonkeyPatch) -> None:
    """A claim does not take its rows from the list of those that can be claimed."""
    lease = queue_table.QueueTable._lease

    def lease_and_keep(self: queue_table.QueueTable, rows: Any, lease_until: int, worker: str) -> Any:  # noqa: ANN401
        columns = lease(self, rows, lease_until, worker)
        for row in rows:
            row.is_ready = True
            self._ready.push(row)
        return columns

    patch.setattr(queue_table.QueueTable, "_lease", lease_and_keep)


def _repeat_delivered(patch: pytest.MonkeyPatch) -> None:
    """What was delivered is tried again."""
    record = recorder.Recorder._outcome

    def retry(
        self: recorder.Recorder,
        claim: queue.Claimed,
        result: values.RecipientResult,
        found: disposition.Disposition,
        attempt_info: recorder.AttemptInfo,
    ) -> outcomes.Outcome:
        again = msgspec.structs.replace(found, verdict=disposition.Verdict.RETRY)
        return record(self, claim, result, again, attempt_info)

    patch.setattr(recorder.Recorder, "_outcome", retry)


def _renew_nothing(patch: pytest.MonkeyPatch) -> None:
    """Leases are not renewed, and nobody asks whether they have expired."""

    async def renew(_: recorder.Leases) -> None:
        pass

    patch.setattr(recorder.Leases, "_renew", renew)
    patch.setattr(recorder.Leases, "is_safe", lambda *_, **__: True)


def _forget_rows(patch: pytest.MonkeyPatch) -> None:
    """A deferred recipient disappears from the queue."""

    def lose(self: queue_table.QueueTable, *key: Any) -> list[tuple[object, ...]]:
        return self.remove(*key[:3])

    patch.setattr(queue_table.QueueTable, "postpone", lose)


def _ignore_rate(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(adaptive_rate.AdaptiveRate, "take", lambda *_: 0.0)


def _ignore_connections(patch: pytest.MonkeyPatch) -> None:
    many = property(lambda _: 50, lambda *_: None)
    patch.setattr(adaptive_rate.AdaptiveRate, "allowed_connections", many)


def _starve_an_account(patch: pytest.MonkeyPatch) -> None:
    """The mail of one account is never claimed."""
    plan = dispatcher.Dispatcher._plan

    def plan_without(self: dispatcher.Dispatcher, queue_keys: Any) -> Any:  # noqa: ANN401
        return plan(self, [key for key in queue_keys if not key.endswith(" a0000")])

    patch.setattr(dispatcher.Dispatcher, "_plan", plan_without)


@pytest.mark.parametrize(
    "break_it, seed, expected",
    [
        (_keep_ready, 2, "was delivered twice"),
        (_repeat_delivered, 2, "was delivered twice"),
        (_renew_nothing, 1, "under the lease of"),
        (_forget_rows, 1, "accepted, but"),
        (_ignore_rate, 12, "messages a second to"),
        (_ignore_connections, 1, "connections to"),
        (_starve_an_account, 1, "for its first attempt"),
    ],
    ids=lambda value: value.__name__.strip("_") if callable(value) else "",
)
def test_a_broken_scheduler_is_found(
    break_it: Break, seed: int, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_it(monkeypatch)
    assert any(expected in violation for violation in _day(seed).violations)


def test_a_job_that_is_dropped_leaves_mail_in_the_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    dropped: list[object] = []
    add = provider_queue.ProviderQueue.add

    def add_or_drop(self: provider_queue.ProviderQueue, job: Any) -> None:  # noqa: ANN401
        if dropped:
            add(self, job)
        else:
            dropped.append(job)

    monkeypatch.setattr(provider_queue.ProviderQueue, "add", add_or_drop)
    assert _day(1).queued == 1
