"""Requests are read newest first within their account, trimmed to a number and a size, and deleted when old."""

from postroad.storage.engine.store import Transaction
from postroad.storage.people import request_log
from tests.storage import samples


def entry(number: int, *, account_id: str = "acc_1", status: int = 403, body: bytes = b"") -> request_log.Entry:
    return request_log.Entry(
        account_id=account_id,
        id=f"req_{number}",
        caller_id=f"key_{number % 2}",
        method="POST",
        path="/emails",
        status=status,
        code="forbidden",
        error="not verified",
        client_address="192.0.2.1",
        body_size=7,
        body=body,
        skipped=0,
        created_at=samples.NOW + number,
    )


async def insert(tx: Transaction, *entries: request_log.Entry, rows: int = 9, octets: int = 99) -> None:
    await request_log.insert(tx, entries, rows=rows, octets=octets)


async def ids(tx: Transaction, account_id: str = "acc_1", **filters: object) -> list[str]:
    wanted = {"before": "req_~", "after": "", "status": 0, "below": 600, "caller_id": "", "limit": 9} | filters
    return [found.id for found in await request_log.page(tx, account_id, **wanted)]  # type: ignore[arg-type]


async def test_requests_are_read_newest_first_and_within_their_account(tx: Transaction) -> None:
    await insert(tx, entry(1), entry(0), entry(2, status=503), entry(9, account_id="acc_2"))
    assert await ids(tx) == ["req_2", "req_1", "req_0"]
    assert await ids(tx, before="req_2", limit=1) == ["req_1"]
    assert await ids(tx, after="req_1", below=500) == ["req_1"]
    assert await ids(tx, status=500) == ["req_2"]
    assert await ids(tx, caller_id="key_0") == ["req_2", "req_0"]
    assert await ids(tx, "acc_2") == ["req_9"]
    found = await request_log.by_id(tx, "acc_1", "req_1")
    assert found is not None
    assert (found.id, found.error, found.body, found.caller) == ("req_1", "not verified", b"", "")
    assert await request_log.by_id(tx, "acc_1", "req_9") is None


async def test_an_account_keeps_so_many_of_the_newest(tx: Transaction) -> None:
    await insert(tx, entry(5), entry(6, account_id="acc_2"))
    await insert(tx, *(entry(number) for number in range(7, 10)), rows=3)
    assert await ids(tx) == ["req_9", "req_8", "req_7"]
    assert await ids(tx, "acc_2") == ["req_6"]


async def test_an_account_keeps_the_newest_with_so_many_octets_of_bodies(tx: Transaction) -> None:
    await insert(tx, *(entry(number, body=b"\xff" * 10) for number in range(5)), octets=29)
    assert await ids(tx) == ["req_4", "req_3"]
    await insert(tx, entry(5), octets=29)
    assert await ids(tx) == ["req_5", "req_4", "req_3"]


async def test_old_requests_go_some_at_a_time(tx: Transaction) -> None:
    await insert(tx, *(entry(number) for number in range(5)))
    assert [await request_log.sweep(tx, before=samples.NOW + 3, limit=2) for _ in range(3)] == [2, 1, 0]
    assert await ids(tx) == ["req_4", "req_3"]
