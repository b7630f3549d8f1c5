"""Frontends in processes of their own: one service to whoever calls, stops or kills it, on both engines."""

import asyncio
import base64
import json
import os
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
import pytest_asyncio
from prometheus_client import parser

from tests.reliability import delivery_harness, process_trees, profile, service_process, sinks

FRONTENDS = 2
KEYS = [f"key {number}" for number in range(60 if profile.IS_LONG else 30)]
# More than there are frontends, so that one has two at once.
LARGE = 6 if profile.IS_LONG else 3
RATE, BURST = 1, 40


@pytest_asyncio.fixture
async def service(tmp_path: Path, url: str) -> AsyncIterator[service_process.Service]:
    async with service_process.ending(service_process.Service(tmp_path, url, frontends=FRONTENDS)) as service:
        await service.start()
        yield service
        left = processes(service)
    await gone(*left)


def processes(service: service_process.Service) -> list[int]:
    """The ids of its processes, the writer's first."""
    writer = service.process.pid
    return [writer, *process_trees.children(writer)]


async def gone(*process_ids: int) -> None:
    """None of these lives on, or holds its address."""

    async def have_gone() -> bool:
        return not any(map(process_trees.is_alive, process_ids))

    await service_process.until(have_gone)


async def send_all(callers: service_process.Callers) -> None:
    await asyncio.gather(*(callers.send(key) for key in KEYS))


async def test_all_frontends_together_behave_as_one_service(service: service_process.Service) -> None:
    async with service_process.calling(service) as callers:
        await send_all(callers)
        await service_process.until(lambda: metrics_add_up(callers))
        await callers.repeat_everything()
        await one_key_makes_one_message(callers)
        await a_key_is_refused_for_another_message(callers)
        assert await service.stop() == 0
        await callers.prove()
    lines = [json.loads(line) for line in service.log.read_bytes().splitlines()]
    used = {line["process"] for line in lines if line["event"] == "request"}
    assert used == {f"frontend {number + 1}" for number in range(FRONTENDS)}
    assert service.errors() == []


async def metrics_add_up(callers: service_process.Callers) -> bool:
    # Several at once, at the same frontends.
    address = f"{callers.service.base_url}/metrics"
    answers = await asyncio.gather(*(callers.client.get(address) for _ in range(4)))
    assert {answer.status_code for answer in answers} == {200}
    text = answers[0].text
    samples = [one for family in parser.text_string_to_metric_families(text) for one in family.samples]
    accepted = [one.value for one in samples if one.name == "postroad_messages_accepted_total"]
    return sum(accepted) == len(KEYS)


async def one_key_makes_one_message(callers: service_process.Callers) -> None:
    """The same key at all frontends at once gives one message."""
    answers = await asyncio.gather(*(callers.post("the same") for _ in range(40)))
    codes = Counter(answer.status_code for answer in answers)
    assert codes.keys() <= {202, 409}
    made = [answer for answer in answers if answer.status_code == 202]
    assert len({answer.content for answer in made}) == 1
    assert sum("idempotent-replayed" not in answer.headers for answer in made) == 1
    callers.receipts["the same"] = service_process.Receipt.of(made[0])


async def a_key_is_refused_for_another_message(callers: service_process.Callers) -> None:
    """A refusal of the store reads as in one process."""
    for _ in range(10):  # whichever frontend it reaches
        answer = await callers.post("the same", subject="another")
        service_process.check_refusal(answer, 409, "idempotency_conflict")


async def test_refused_sends_count_once_at_all_frontends(tmp_path: Path, url: str) -> None:
    limits = {"request_rate": RATE, "request_burst": BURST}
    service = service_process.Service(tmp_path, url, frontends=FRONTENDS, limits=limits)
    async with service_process.ending(service):
        await service.start()
        async with service_process.calling(service) as callers:

            async def refused(number: int) -> int:
                answer = await callers.post(f"refused {number}", **{"from": "shop@foreign.example"})
                return answer.status_code

            began = time.monotonic()
            codes = Counter(await asyncio.gather(*(refused(number) for number in range(3 * BURST))))
            passed = time.monotonic() - began
        assert await service.stop() == 0
    assert codes.keys() == {403, 429}
    assert BURST <= codes[403] <= BURST + RATE * passed + 1
    lines = [json.loads(line) for line in service.log.read_bytes().splitlines()]
    used = {line["process"] for line in lines if line["event"] == "request"}
    assert used == {f"frontend {number + 1}" for number in range(FRONTENDS)}


async def test_a_message_of_ten_mebibytes_is_handed_over_whole(service: service_process.Service) -> None:
    content = base64.b64encode(os.urandom(7 * 1024 * 1024)).decode()
    attachment = {"filename": "large.bin", "content": content}
    async with service_process.calling(service) as callers:
        await asyncio.gather(*(callers.send(f"large {number}", attachments=[attachment]) for number in range(LARGE)))
        await callers.prove()


@pytest.mark.parametrize("end", ["asked to stop", "group asked to stop", "writer killed", "frontend killed"])
async def test_however_it_ends_under_load_nothing_is_lost_and_nobody_is_left_behind(
    tmp_path: Path, url: str, end: str
) -> None:
    service = service_process.Service(tmp_path, url, frontends=FRONTENDS)
    async with service_process.ending(service):
        await service.start("setsid")
        async with service_process.calling(service) as callers:
            sending = asyncio.create_task(send_all(callers))
            await service_process.until(lambda: has_receipts(callers))
            _, first, second = processes(service)
            if end == "writer killed":
                await service.kill()
            elif end == "frontend killed":
                os.kill(first, signal.SIGKILL)
                assert await service.ended() == 1
                assert any(b'"frontend_lost"' in line for line in service.errors())
            else:
                stop = os.killpg if end.startswith("group") else os.kill
                stop(service.process.pid, signal.SIGTERM)
                assert await service.ended() == 0
                assert service.errors() == []
            await gone(first, second)
            await service.start()
            await sending
            await callers.repeat_everything()
            await callers.prove()


async def test_frontends_accept_mail_and_are_not_ready_while_the_service_drains(tmp_path: Path, url: str) -> None:
    service = service_process.Service(tmp_path, url, frontends=FRONTENDS, drain_seconds=3600)
    async with service_process.ending(service):
        await service.start()
        async with service_process.calling(service) as callers:

            async def is_draining() -> bool:
                # A connection for each: the system chooses the frontend by the connection.
                for _ in range(4 * FRONTENDS):
                    async with httpx.AsyncClient() as client:
                        if (await client.get(f"{service.base_url}/readyz")).status_code != 503:
                            return False
                return True

            service.process.send_signal(signal.SIGTERM)
            await service_process.until(is_draining)
            await send_all(callers)
            await callers.prove()
            children = processes(service)[1:]
            service.process.send_signal(signal.SIGTERM)
            assert await service.ended() == -signal.SIGTERM
            await gone(*children)


async def test_frontends_read_the_settings_again_with_the_writer(tmp_path: Path, clean_sqlite_url: str) -> None:
    service = service_process.Service(tmp_path, clean_sqlite_url, frontends=FRONTENDS)
    async with service_process.ending(service):
        await service.start()
        service.file.write_text(service.file.read_text() + "[quotas]\nusers = 3\n")
        service.process.send_signal(signal.SIGHUP)

        async def have_reloaded() -> bool:
            lines = [
                json.loads(line) for line in service.log.read_bytes().splitlines(keepends=True) if line[-1:] == b"\n"
            ]
            read = [line for line in lines if line["event"] == "settings_reloaded"]
            assert all((line["applied"], line["needs_restart"]) == (["quotas.users"], []) for line in read)
            return {line.get("process") for line in read} == {None, "frontend 1", "frontend 2"}

        await service_process.until(have_reloaded)
        assert await service.stop() == 0


async def test_frontends_of_a_writer_that_hangs_are_not_ready(service: service_process.Service) -> None:
    async with service_process.calling(service) as callers:
        assert (await callers.client.get(f"{service.base_url}/readyz")).status_code == 200
        service.process.send_signal(signal.SIGSTOP)
        try:
            service_process.check_refusal(
                await callers.client.get(f"{service.base_url}/readyz"), 503, "service_unavailable"
            )
            assert (await callers.client.get(f"{service.base_url}/healthz")).status_code == 200
        finally:
            service.process.send_signal(signal.SIGCONT)
        assert (await callers.client.get(f"{service.base_url}/readyz")).status_code == 200


async def has_receipts(callers: service_process.Callers) -> bool:
    return bool(callers.receipts)


async def test_mail_of_a_frontend_is_delivered_by_the_writer_at_once(tmp_path: Path, url: str) -> None:
    async with sinks.running() as sink:
        # Its next poll would come too late: the engine is woken for what frontends have handed over.
        tables = delivery_harness.as_toml(delivery_harness.sections(sink, poll_milliseconds=3_600_000))
        service = service_process.Service(
            tmp_path, url, roles=("api", "delivery"), sections=tables, frontends=FRONTENDS
        )
        async with service_process.ending(service):
            await service.start()
            async with service_process.calling(service) as callers:
                await callers.send("one")
                await sink.got(service_process.UNIQUE_RECIPIENTS)
                assert await service.stop() == 0
