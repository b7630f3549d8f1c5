"""A backup under load, a crash, a restore and a release: nothing accepted before is lost, duplicates are announced."""

import asyncio
import itertools
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.postgres_server import PostgresServer
from tests.reliability import delivery_harness, service_process, sinks, whole_service

CALLERS = 4
MESSAGES = 20
LATER = "451 4.3.0 later"


@pytest.fixture
def url(url: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """With the programs of the server, whose version other ones on this machine may not have."""
    if url.startswith("postgresql:"):
        server: PostgresServer = request.getfixturevalue("postgres_server")
        monkeypatch.setenv("PATH", str(server._programs), prepend=":")
    return url


def defer_some(to: Sequence[str]) -> str:
    """The destination defers every third recipient."""
    return LATER if any(one.partition("@")[0].endswith(("0", "3", "6", "9")) for one in to) else sinks.ACCEPTED


async def back_up_under_load(whole: whole_service.WholeService, file: Path) -> dict[str, str]:
    """Send, make a backup, send on, and crash; returns what was accepted before the backup began."""
    numbers = itertools.count()

    async def push() -> None:
        while True:
            await whole.post(f"message {next(numbers)}")

    async def accepted(more: int) -> None:
        goal = len(whole.accepted) + more
        await service_process.until(lambda: asyncio.sleep(0, result=len(whole.accepted) >= goal))

    callers = [asyncio.create_task(push()) for _ in range(CALLERS)]
    await accepted(MESSAGES)
    before = dict(whole.accepted)
    assert (await whole.service.command("backup", str(file)))[0] == 0
    await accepted(MESSAGES)
    assert (await whole.service.command("restore", str(file), "--force"))[0] == 1  # the service runs
    for caller in callers:
        caller.cancel()
    await asyncio.gather(*callers, return_exceptions=True)
    await whole.service.kill()
    return before


async def test_nothing_accepted_before_a_backup_is_lost_and_what_may_arrive_twice_is_listed(
    url: str, tmp_path: Path
) -> None:
    file = tmp_path / "backup"
    async with whole_service.configured_service(tmp_path, url, retry_seconds=[600, 600]) as whole:
        service, whole.sink.answer = whole.service, defer_some
        await service.start()
        before = await back_up_under_load(whole, file)
        assert (await service.command("restore", str(file)))[0] == 1  # what is there would be gone
        code, restored = await service.command("restore", str(file), "--force")
        assert code == 0
        assert restored["aside"]
        assert restored["reason"].startswith("restored from a backup whose newest message is from 2")
        arrived, whole.sink.answer = Counter(whole.sink.recipients), lambda _: sinks.ACCEPTED
        await service.start()
        assert (await whole.post("after")).status_code == 202
        queue = (await service.command("queue", "list"))[1]
        assert {state for state, number in queue["counts"].items() if number} <= {"held", "sending"}
        code, asked = await service.command("queue", "release")
        assert (code, asked["released"], asked["may_be_duplicates"]) == (1, False, True)
        listed = {one["email"] for one in (await service.command("queue", "release", "--list"))[1]["recipients"]}
        assert sum(one["recipients"] for one in asked["counts"]) == len(listed) == restored["may_be_duplicates"]

        assert Counter(whole.sink.recipients) == arrived
        assert (await service.command("queue", "release", "--yes"))[0] == 0
        async with whole_service.open_context(url) as ctx:
            post = delivery_harness.DeliveryHarness(ctx, whole.account_id)
            await post.end_leases()
            await post.finished()
            stored = dict(await service_process.stored_messages(ctx, whole.account_id))
        after = whole_service.address("after")
        assert before.items() <= stored.items()
        assert {whole_service.address(key) for key in before} <= set(whole.sink.recipients)
        assert set(Counter(whole.sink.recipients) - arrived) <= listed | {after}
        assert whole.sink.recipients.count(after) == 1
        assert await service.stop() == 0
        assert (await service.command("verify"))[1]["findings"] == []
