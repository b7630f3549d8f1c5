"""Temporary outages: a full disk, a locked store, a stop under load, many callers at once.

Each ends with the service as it was before, without a restart, and with nothing half-stored.
"""

import asyncio
import contextlib
import json
import resource
import shutil
import subprocess
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import apsw
import asyncpg
import httpx

from tests.reliability import disks, service_process
from tests.reliability.service_process import Callers, Receipt, Service

MANY = 50
# More than a log has room for that was emptied before its file was full.
LARGE = "Hello " * 100_000


@contextlib.asynccontextmanager
async def called(folder: Path, url: str, **limits: int) -> AsyncIterator[Callers]:
    """A running service with callers; in the end it stops cleanly and its store is consistent."""
    async with service_process.running(folder, url, **limits) as service, service_process.calling(service) as callers:
        yield callers
        if service.process.poll() is None:
            assert await service.stop() == 0
        assert service.errors() == []
        await callers.prove()


@contextlib.asynccontextmanager
async def locked_file(callers: Callers) -> AsyncIterator[None]:
    """Another process keeps the write lock of the file."""
    with contextlib.closing(apsw.Connection(callers.service.url.removeprefix("sqlite:///"))) as connection:
        connection.set_busy_timeout(5000)
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")


@contextlib.asynccontextmanager
async def locked_account(callers: Callers) -> AsyncIterator[None]:
    """Another host keeps the lock of the account."""
    connection = await asyncpg.connect(callers.service.url)
    try:
        async with connection.transaction():
            await connection.fetch("SELECT id FROM accounts WHERE id = $1 FOR UPDATE", callers.account.id)
            yield
    finally:
        await connection.close()


def locked(callers: Callers) -> AbstractAsyncContextManager[None]:
    return locked_file(callers) if callers.service.url.startswith("sqlite") else locked_account(callers)


async def ready(service: Service, client: httpx.AsyncClient) -> int:
    return (await client.get(f"{service.base_url}/readyz")).status_code


async def test_a_file_that_cannot_grow_refuses_mail_and_takes_it_again_when_it_can(tmp_path: Path) -> None:
    async with called(tmp_path, f"sqlite:///{tmp_path}/postroad.db") as callers:
        await callers.send("first")
        pid = callers.service.process.pid
        _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
        size = (tmp_path / "postroad.db-wal").stat().st_size
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, hard))
        await check_full(callers)
        async with service_process.inside(callers.service.url) as ctx:
            assert len(await service_process.stored_messages(ctx, callers.account.id)) == 1
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (hard, hard))
        await check_recovered(callers)


async def test_a_full_disk_refuses_mail_and_takes_it_again_when_there_is_room(small_disk: Path, tmp_path: Path) -> None:
    before, after = tmp_path / "before.db", tmp_path / "after.db"
    service = Service(tmp_path, f"sqlite:///{before}")
    async with service_process.ending(service), service_process.calling(service) as callers:
        service.move(f"sqlite:///{small_disk}/postroad.db")
        await service.start(*disks.SMALL_DISK, str(small_disk), str(before))
        seen = disks.seen_by(service.process.pid, small_disk)
        await callers.send("first")
        disks.fill(seen / "filler")
        await check_full(callers)
        (seen / "filler").unlink()
        await check_recovered(callers)
        for kind in ("", "-wal"):
            shutil.copyfile(f"{seen}/postroad.db{kind}", f"{after}{kind}")
        assert await service.stop() == 0
        assert service.errors() == []
        service.move(f"sqlite:///{after}")
        await callers.prove()


async def check_full(callers: Callers) -> None:
    """No mail is taken, and everything else goes on."""
    service, client = callers.service, callers.client
    for key in ("second", "third", "second"):
        service_process.check_refusal(await callers.post(key, text=LARGE), 503, "service_unavailable")
    await service_process.until(lambda: is_refused_as_full(callers))
    # Callers hear that it is so; the log says why.
    assert any(
        b'"service_unavailable"' in line and b'"cause"' in line for line in service.log.read_bytes().splitlines()
    )
    assert (await client.get(f"{service.base_url}/healthz")).status_code == 200
    first = json.loads(callers.receipts["first"].body)["id"]
    shown = await client.get(f"{service.base_url}/emails/{first}", headers=callers.account.headers)
    assert shown.status_code == 200
    assert (await callers.send("first")).replayed


async def is_refused_as_full(callers: Callers) -> bool:
    """Whether `/readyz` says so: the few bytes that it tries find room for longer than mail does."""
    service_process.check_refusal(await callers.post("second", text=LARGE), 503, "service_unavailable")
    return await ready(callers.service, callers.client) == 503


async def check_recovered(callers: Callers) -> None:
    """The keys that were refused are free, for any body."""
    assert await ready(callers.service, callers.client) == 200
    for key in ("second", "third"):
        assert not (await callers.send(key)).replayed


async def test_a_log_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    service = Service(tmp_path, f"sqlite:///{tmp_path}/postroad.db")
    async with service_process.ending(service):
        reader = reader_of_two_lines(service.log)
        assert reader.stdin is not None
        with reader.stdin:
            await service.start(log=reader.stdin)
        assert reader.wait(service_process.TIMEOUT_SECONDS) == 0
        async with service_process.calling(service) as callers:
            for number in range(3):
                await callers.send(f"key {number}")
            assert await service.stop() == 0
            await callers.prove()


def reader_of_two_lines(log: Path) -> subprocess.Popen[bytes]:
    """Whoever writes to it finds a closed pipe after the migration and the start."""
    with log.open("wb") as file:
        return subprocess.Popen(["head", "-n", "2"], stdin=subprocess.PIPE, stdout=file)


async def test_a_store_that_is_locked_for_long_is_a_temporary_failure(tmp_path: Path) -> None:
    async with called(tmp_path, f"sqlite:///{tmp_path}/postroad.db", accept_seconds=1) as callers:
        await callers.send("before")
        async with locked_file(callers):
            # The first waits for the lock, the others behind it, and not as long.
            responses = await asyncio.gather(*(callers.post(f"locked out {number}") for number in range(4)))
            for response in responses:
                service_process.check_refusal(response, 503, "temporary_failure")
            assert await ready(callers.service, callers.client) == 503
        assert await ready(callers.service, callers.client) == 200
        for number in range(4):
            assert not (await callers.send(f"locked out {number}")).replayed


async def test_a_stop_answers_what_is_under_way_and_takes_nothing_new(url: str, tmp_path: Path) -> None:
    async with called(tmp_path, url) as callers:
        await callers.send("before")
        async with locked(callers):
            under_way = {key: await one_under_way(callers, key) for key in ("one", "two", "three")}
            stopped = asyncio.create_task(callers.service.stop())
            await service_process.until(lambda: is_refused(callers))
            assert not any(task.done() for task in (*under_way.values(), stopped))
        for key, task in under_way.items():
            callers.receipts[key] = Receipt.of(await task)
            assert not callers.receipts[key].replayed
        assert await stopped == 0


async def one_under_way(callers: Callers, key: str) -> asyncio.Task[httpx.Response]:
    """A request that the service works on: of two with one key, the other one is answered."""
    tasks = {asyncio.create_task(callers.post(key)) for _ in range(2)}
    (held_off,), (under_way,) = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    service_process.check_refusal(await held_off, 409, "idempotency_in_progress")
    return under_way


async def is_refused(callers: Callers) -> bool:
    """Whether a newcomer finds nobody at home."""
    try:
        _, writer = await asyncio.open_connection(*callers.service.address)
    except ConnectionRefusedError:
        return True
    writer.close()
    return False


async def test_fifty_identical_requests_at_once_make_one_message(url: str, tmp_path: Path) -> None:
    async with called(tmp_path, url) as callers:
        responses = await asyncio.gather(*(callers.post("the same") for _ in range(MANY)))
        check_one_was_accepted(responses)
        callers.receipts["the same"] = first_receipt(responses)
        assert (await callers.send("the same")).replayed


def check_one_was_accepted(responses: list[httpx.Response]) -> None:
    """One request made a message; every other one was told to wait, or got the same answer."""
    accepted = [Receipt.of(response) for response in responses if response.status_code == 202]
    assert Counter(receipt.replayed for receipt in accepted)[False] == 1
    assert len({(receipt.body, receipt.request_id) for receipt in accepted}) == 1
    for response in responses:
        if response.status_code != 202:
            service_process.check_refusal(response, 409, "idempotency_in_progress")


def first_receipt(responses: list[httpx.Response]) -> Receipt:
    return next(
        receipt
        for receipt in map(Receipt.of, (one for one in responses if one.status_code == 202))
        if not receipt.replayed
    )


async def test_two_hosts_that_get_the_same_key_at_once_make_one_message(
    clean_postgres_url: str, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    async with (
        called(tmp_path, clean_postgres_url) as callers,
        service_process.running(tmp_path / "other", clean_postgres_url) as other,
    ):
        hosts = (callers.service.base_url, other.base_url)
        for number in range(20):
            key = f"same-{number}"
            responses = await asyncio.gather(*(callers.post(key, base_url=host) for host in hosts * 2))
            check_one_was_accepted(responses)
            callers.receipts[key] = first_receipt(responses)
        for number in range(20):
            key = f"different-{number}"
            here, there = await asyncio.gather(*(callers.post(key, base_url=host, text=host) for host in hosts))
            won, lost = (here, there) if here.status_code == 202 else (there, here)
            callers.receipts[key] = Receipt.of(won)
            service_process.check_refusal(lost, 409, "idempotency_conflict")
        assert await other.stop() == 0
        assert other.errors() == []


async def test_a_revoked_key_stops_within_a_second_in_a_running_service(url: str, tmp_path: Path) -> None:
    async with called(tmp_path, url) as callers:
        await callers.send("before")
        code, _ = await callers.service.command("apikey", "revoke", callers.account.api_key_id)
        assert code == 0
        # Not a hope that a second is enough, but the promise itself: whoever comes later is refused.
        await asyncio.sleep(1)
        service_process.check_refusal(await callers.post("after"), 401, "unauthorized")
        service_process.check_refusal(await callers.post("before"), 401, "unauthorized")
