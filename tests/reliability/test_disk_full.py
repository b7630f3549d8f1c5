"""A real disk that is full: both doors refuse for now, results wait for room, and all goes on without a restart."""

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

from postroad.roles import duties, maintenance
from postroad.services import gauges
from tests import contexts
from tests.reliability import delivering, disks, houses, serving, sinks

YEAR_SECONDS = 365 * 24 * 3600


async def test_a_full_disk_loses_nothing_that_was_sent_or_told(small_disk: Path, tmp_path: Path) -> None:
    before, after = tmp_path / "before.db", tmp_path / "after.db"
    async with houses.closed_house(tmp_path, f"sqlite:///{before}") as house:
        house.door.move(f"sqlite:///{small_disk}/postroad.db")
        await house.door.start(*disks.SMALL_DISK, str(small_disk), str(before))
        seen = disks.seen_by(house.door.process.pid, small_disk)
        gate = await house.under_way("in flight", "told")
        disks.fill(seen / "filler")
        await house.refuse("third", "fourth", "third", "fourth")
        house.sink.release(sinks.Point.CONTENT)
        gate.open()
        await house.says("results_not_recorded_yet")
        await house.says("webhook_result_not_recorded_yet")
        assert (await house.client.get(f"{house.door.base_url}/healthz")).status_code == 200
        shown = await house.client.get(f"{house.door.base_url}/emails/{house.accepted['in flight']}", auth=house.login)
        # It has arrived, and the store has no room to say so.
        assert shown.json()["status"] in {"queued", "sending"}, shown.text

        (seen / "filler").unlink()
        await house.accept("third", "fourth")
        await is_told(house)
        for kind in ("", "-wal"):
            await asyncio.to_thread(shutil.copyfile, f"{seen}/postroad.db{kind}", f"{after}{kind}")
        assert await house.door.stop() == 0
        assert house.door.errors() == []
        house.door.move(f"sqlite:///{after}")
    await house.prove()


async def is_told(house: houses.House) -> None:
    """Until the service itself says that every event was told: only it can see its disk."""

    async def is_so() -> bool:
        return len(delivering.events(house.door, "webhook_delivered")) >= len(house.accepted)

    await serving.until(is_so)


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
async def test_what_tidies_up_says_that_it_cannot_and_goes_on_when_it_can(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintenance, "SWEEP_EVERY_SECONDS", 0.01)
    clock = contexts.Clock()
    async with delivering.post_office(url, {"domains": {"check_hours": 0}}, clock=clock) as post:
        await post.send()
        log, lines = captured()
        duty = duties.Duty(post.ctx, log, asyncio.Event(), functools.partial(gauges.Gauges().text, post.ctx))
        work = asyncio.ensure_future((await maintenance.start_maintenance(duty)).work())
        await said(lines, "swept")
        with no_file_grows(url):
            clock.pass_seconds(YEAR_SECONDS)  # charts of then are to be forgotten now
            await said(lines, "sweep_put_off")
            assert not swept_hours(lines)
        await said(lines, "swept")
        await serving.until(lambda: asyncio.sleep(0, result=swept_hours(lines)))
        duty.stopping.set()
        await work
        assert not [line for line in lines if line["log_level"] in {"error", "critical"}]


def captured() -> tuple[Any, list[Any]]:
    capture = structlog.testing.LogCapture()
    filtering = structlog.make_filtering_bound_logger("debug")
    return structlog.wrap_logger(None, processors=[capture], wrapper_class=filtering), capture.entries


async def said(lines: list[Any], event: str) -> None:
    """Until a line comes that says this."""
    seen = len(lines)
    await serving.until(lambda: asyncio.sleep(0, result=any(line["event"] == event for line in lines[seen:])))


def swept_hours(lines: list[Any]) -> bool:
    return any(line.get("traffic_hours") for line in lines)


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
