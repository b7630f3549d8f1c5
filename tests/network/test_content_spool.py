"""Large messages wait on disk and in turn, and nobody takes all of the room."""

import asyncio
import errno
import tempfile
from pathlib import Path

import pytest

from postroad.network.smtp import content_spool

MEGABYTE = b"x" * 1024 * 1024


def test_a_content_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    store = content_spool.ContentSpool(str(tmp_path)).open("a")
    assert store.write(b"first ")
    assert store.write(b"second")
    assert list(tmp_path.iterdir()) == []  # the file has no name, so a crash leaves nothing behind
    assert store.read() == b"first second"
    store.close()


def test_nobody_gets_all_of_the_room() -> None:
    spool = content_spool.ContentSpool(megabytes=10)
    hostile = [spool.open("hostile") for _ in range(10)]
    assert [store.write(MEGABYTE) for store in hostile] == [True] * 8 + [False] * 2
    other = spool.open("other")
    assert other.write(MEGABYTE)
    for store in (*hostile, other):
        store.close()
        store.close()
    assert spool.shares.free == 10


def test_parts_of_a_unit_count_as_one() -> None:
    spool = content_spool.ContentSpool(megabytes=10)
    store = spool.open("a")
    assert all(store.write(MEGABYTE[: 256 * 1024]) for _ in range(4))
    assert spool.shares.free == 9
    assert store.write(b"x")
    assert spool.shares.free == 8
    store.close()


def test_a_full_disk_is_reported_and_gives_its_room_back(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    problems: list[OSError] = []
    spool = content_spool.ContentSpool(str(tmp_path), megabytes=10, failed=problems.append)

    def full(**_options: object) -> object:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    store = spool.open("a")
    assert not store.write(b"x")
    store.close()
    assert [problem.errno for problem in problems] == [errno.ENOSPC]
    assert spool.shares.free == 10


async def test_few_large_messages_are_processed_at_once_and_owners_take_turns() -> None:
    spool = content_spool.ContentSpool()
    served: list[str] = []
    go_on = asyncio.Event()

    async def process(owner: str) -> None:
        async with spool.turn(owner):
            served.append(owner)
            await go_on.wait()

    async with asyncio.TaskGroup() as tasks:
        for owner in ("hostile", "hostile", "hostile", "hostile", "other"):
            tasks.create_task(process(owner))
            await asyncio.sleep(0)
        assert served == ["hostile", "hostile"]
        go_on.set()
    assert served[2] == "other"


async def test_who_waits_too_long_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content_spool, "TURN_SECONDS", 0.01)
    spool = content_spool.ContentSpool()
    async with spool.turn("a"), spool.turn("a"):
        with pytest.raises(TimeoutError):
            async with spool.turn("b"):
                pass
