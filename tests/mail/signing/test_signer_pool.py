"""Signer processes: many requests at once, each answered by its key, whatever happens to a worker."""

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
import uvloop

from postroad.mail.signing import domain_keys, signer_pool
from tests.services import rsa_keys

Working = signer_pool.SignerPool


@pytest_asyncio.fixture
async def working() -> AsyncIterator[Working]:
    made = Working(2)
    yield made
    await made.close()


@pytest.fixture(scope="module")
def keys() -> list[domain_keys.SigningKey]:
    return [rsa_keys.make(name) for name in "abcd"]


async def sign(working: Working, key: domain_keys.SigningKey, text: str) -> bool:
    return rsa_keys.is_signed(key, text, await working.sign(key, rsa_keys.digest(text)))


def a_program(folder: Path, text: str) -> str:
    file = folder / "worker.py"
    file.write_text(text)
    return str(file)


async def test_many_requests_at_once_are_signed_each_by_its_key(
    working: Working, keys: list[domain_keys.SigningKey]
) -> None:
    wanted = [(key, f"{number}") for number in range(50) for key in keys]
    assert all(await asyncio.gather(*(sign(working, key, text) for key, text in wanted)))
    assert len(working._workers) == 2
    assert not any(worker.pending for worker in working._workers)


async def test_a_worker_takes_few_at_a_time_so_that_the_others_have_work_too(
    working: Working, keys: list[domain_keys.SigningKey]
) -> None:
    assert await sign(working, keys[0], "first")
    signing = [asyncio.create_task(sign(working, keys[0], str(number))) for number in range(100)]
    for _ in range(3):
        await asyncio.sleep(0)
    loads = [len(worker.pending) for worker in working._workers]
    assert max(loads) <= 32
    assert all(await asyncio.gather(*signing))


async def test_a_worker_that_ends_is_replaced_and_its_requests_are_asked_again(
    working: Working, keys: list[domain_keys.SigningKey]
) -> None:
    assert await sign(working, keys[0], "first")
    before = set(working._workers)
    signing = [asyncio.create_task(sign(working, key, str(number))) for number in range(20) for key in keys]
    for _ in range(3):
        await asyncio.sleep(0)
    for worker in before:
        worker.kill()
    assert all(await asyncio.gather(*signing))
    assert not before & working._workers
    assert all(worker.ended.done() for worker in before)


async def test_an_idle_worker_that_ends_is_missed_only_when_there_is_work(
    working: Working, keys: list[domain_keys.SigningKey]
) -> None:
    assert await sign(working, keys[0], "first")
    for worker in tuple(working._workers):
        worker.kill()
        await worker.ended
    assert not working._workers
    assert not working._starts
    assert await sign(working, keys[0], "second")


async def test_a_key_of_no_use_fails_alone(working: Working, keys: list[domain_keys.SigningKey]) -> None:
    results = await asyncio.gather(
        sign(working, keys[0], "one"),
        working.sign(rsa_keys.UNUSABLE, rsa_keys.digest("two")),
        sign(working, keys[0], "three"),
        return_exceptions=True,
    )
    assert results[0] is True
    assert isinstance(results[1], signer_pool.SigningFailed)
    assert str(results[1]) == "the key broken cannot be used"
    assert results[2] is True


async def test_more_keys_than_a_worker_may_have_take_each_others_place(
    monkeypatch: pytest.MonkeyPatch, keys: list[domain_keys.SigningKey]
) -> None:
    monkeypatch.setattr(signer_pool, "MAX_KEYS", 2)
    working = Working(1)
    try:
        assert all(await asyncio.gather(*(sign(working, key, str(n)) for n in range(5) for key in keys)))
        (worker,) = working._workers
        assert len(worker._slots) == 2
        assert sorted(worker._slots._values.values()) == [0, 1]
    finally:
        await working.close()


@pytest.mark.parametrize("program", ["", "raise SystemExit(3)", "import sys; sys.stdin.buffer.read(10)"])
async def test_workers_that_only_end_are_abandoned_soon_and_tried_again_later(
    tmp_path: Path, keys: list[domain_keys.SigningKey], program: str
) -> None:
    working = Working(2, program=a_program(tmp_path, program))
    try:
        for _ in range(2):
            results = await asyncio.gather(
                *(working.sign(keys[0], rsa_keys.digest(str(number))) for number in range(30)), return_exceptions=True
            )
            assert {str(result) for result in results} == {"the signing processes ended before they responded"}
        assert not working._waiting
    finally:
        await working.close()


async def test_workers_that_cannot_be_started_are_abandoned_too(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, keys: list[domain_keys.SigningKey]
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "missing"))
    working = Working(2)
    with pytest.raises(signer_pool.SigningFailed):
        await working.sign(keys[0], rsa_keys.digest("a"))
    await working.close()


async def test_a_worker_that_says_nothing_for_long_is_ended(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, keys: list[domain_keys.SigningKey]
) -> None:
    monkeypatch.setattr(signer_pool, "ANSWER_SECONDS", 0.2)
    working = Working(1, program=a_program(tmp_path, "import signal; signal.pause()"))
    while not working._workers:  # until the machine has had time to start one
        with pytest.raises(signer_pool.SigningFailed, match="did not respond"):
            await working.sign(keys[0], rsa_keys.digest("a"))
    (worker,) = working._workers
    assert not worker.ended.done()
    monkeypatch.setattr(signer_pool, "SILENT_SECONDS", 0.0)
    with pytest.raises(signer_pool.SigningFailed, match="did not respond"):
        await working.sign(keys[0], rsa_keys.digest("b"))
    await worker.ended
    await working.close()


async def test_closing_answers_what_workers_have_and_refuses_the_rest(keys: list[domain_keys.SigningKey]) -> None:
    working = Working(1)
    assert await sign(working, keys[0], "first")
    (worker,) = working._workers
    signing = [asyncio.create_task(sign(working, keys[0], str(number))) for number in range(50)]
    for _ in range(3):
        await asyncio.sleep(0)
    asked = len(worker.pending)
    await working.close()
    results = await asyncio.gather(*signing, return_exceptions=True)
    assert results[:asked] == [True] * asked
    assert {str(result) for result in results[asked:]} == {"the signing processes have stopped"}
    assert worker.ended.done()
    with pytest.raises(signer_pool.SigningFailed):
        await working.sign(keys[0], rsa_keys.digest("late"))


async def test_a_worker_that_does_not_end_by_itself_is_ended(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, keys: list[domain_keys.SigningKey]
) -> None:
    monkeypatch.setattr(signer_pool, "END_SECONDS", 0.1)
    working = Working(1, program=a_program(tmp_path, "import signal; signal.pause()"))
    asking = asyncio.create_task(working.sign(keys[0], rsa_keys.digest("a")))
    while not working._workers:
        await asyncio.sleep(0.01)
    (worker,) = working._workers
    await working.close()
    assert worker.ended.done()
    with pytest.raises(signer_pool.SigningFailed):
        await asking


async def test_closing_while_workers_start_leaves_none_behind(keys: list[domain_keys.SigningKey]) -> None:
    working = Working(2)
    asking = asyncio.create_task(working.sign(keys[0], rsa_keys.digest("a")))
    while not working._starts:
        await asyncio.sleep(0)
    await working.close()
    assert not working._workers
    assert not working._starts
    with pytest.raises(signer_pool.SigningFailed):
        await asking


def test_the_event_loop_of_the_service_does_as_well(keys: list[domain_keys.SigningKey]) -> None:
    async def work() -> list[bool]:
        working = Working(2)
        assert await sign(working, keys[0], "first")
        signing = [asyncio.create_task(sign(working, key, str(number))) for number in range(10) for key in keys]
        await asyncio.sleep(0)
        for worker in tuple(working._workers):
            worker.kill()
        done = await asyncio.gather(*signing)
        await working.close()
        return done

    assert all(uvloop.run(work()))
