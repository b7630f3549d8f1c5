"""A real disk that is full: both listeners refuse temporarily, results wait for space, and no restart is needed."""

import asyncio
import contextlib
import functools
import resource
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog

from postroad.roles import maintenance, role
from postroad.services.operations import gauges
from tests import contexts
from tests.reliability import delivery_harness, disks, service_process, sinks, whole_service

YEAR_SECONDS = 365 * 24 * 3600


async def test_a_full_disk_loses_nothing_that_was_sent_or_reported(small_disk: Path, tmp_path: Path) -> None:
    before, after = tmp_path / "before.db", tmp_path / "after.db"
    async with whole_service.configured_service(tmp_path, f"sqlite:///{before}") as whole:
        whole.service.move(f"sqlite:///{small_disk}/postroad.db")
        await whole.service.start(*disks.SMALL_DISK, str(small_disk), str(before))
        seen = disks.seen_by(whole.service.process.pid, small_disk)
        gate = await whole.under_way("in flight", "reported")
        disks.fill(seen / "filler")
        await whole.refuse("third", "fourth", "third", "fourth")
        whole.sink.release(sinks.Point.CONTENT)
        gate.open()
        await whole.says("results_recording_deferred")
        await whole.says("webhook_result_recording_deferred")
        assert (await whole.client.get(f"{whole.service.base_url}/healthz")).status_code == 200
        shown = await whole.client.get(
            f"{whole.service.base_url}/emails/{whole.accepted['in flight']}", auth=whole.login
        )
        # It has arrived, and the store has no room to say so.
        assert shown.json()["status"] in {"queued", "sending"}, shown.text

        (seen / "filler").unlink()
        await whole.accept("third", "fourth")
        await is_reported(whole)
        for kind in ("", "-wal"):
            await asyncio.to_thread(shutil.copyfile, f"{seen}/postroad.db{kind}", f"{after}{kind}")
        assert await whole.service.stop() == 0
        assert whole.service.errors() == []
        whole.service.move(f"sqlite:///{after}")
    await whole.prove()


async def is_reported(whole: whole_service.WholeService) -> None:
    """Until the service itself logs that every event was delivered: only it can see its disk."""

    async def is_so() -> bool:
        return len(delivery_harness.events(whole.service, "webhook_delivered")) >= len(whole.accepted)

    await service_process.until(is_so)


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
async def test_what_tidies_up_says_that_it_cannot_and_goes_on_when_it_can(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintenance, "CLEANUP_INTERVAL_SECONDS", 0.01)
    clock = contexts.Clock()
    async with delivery_harness.open_harness(url, {"domains": {"check_hours": 0}}, clock=clock) as harness:
        await harness.send()
        log, lines = captured()
        role_context = role.RoleContext(
            harness.ctx, log, asyncio.Event(), functools.partial(gauges.Gauges().text, harness.ctx)
        )
        work = asyncio.ensure_future((await maintenance.start_maintenance(role_context)).work())
        await said(lines, "cleanup_done")
        with no_file_grows(url):
            clock.pass_seconds(YEAR_SECONDS)  # hourly counts of then are to be removed now
            await said(lines, "cleanup_deferred")
            assert not swept_hours(lines)
        await said(lines, "cleanup_done")
        await service_process.until(lambda: asyncio.sleep(0, result=swept_hours(lines)))
        role_context.stopping.set()
        await work
        assert not [line for line in lines if line["log_level"] in {"error", "critical"}]


def captured() -> tuple[Any, list[Any]]:
    capture = structlog.testing.LogCapture()
    filtering = structlog.make_filtering_bound_logger("debug")
    return structlog.wrap_logger(None, processors=[capture], wrapper_class=filtering), capture.entries


async def said(lines: list[Any], event: str) -> None:
    """Until a line comes that says this."""
    seen = len(lines)
    await service_process.until(lambda: asyncio.sleep(0, result=any(line["event"] == event for line in lines[seen:])))


def swept_hours(lines: list[Any]) -> bool:
    return any(line.get("hourly_counts") for line in lines)


@contextlib.contextmanager
def no_file_grows(url: str) -> Iterator[None]:
    """No file of this process may become longer than the log is; Python ignores the signal, so a write fails."""
    size = Path(f"{url.removeprefix('sqlite:///')}-wal").stat().st_size
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
