"""The whole way in one process that is killed on it: mail in over HTTP, out over SMTP, and events to the endpoint.

Callers repeat a request until it is acknowledged. In the end each recipient of each acknowledged message is final and
has exactly one event, by its id, which says how it ended.
"""

import asyncio
import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from postroad.model.events import events
from postroad.model.mail import statuses
from postroad.storage.mail import messages
from tests import webhook_server
from tests.reliability import delivery_harness, profile, service_process, sinks, webhook_processes

ROLES = ("api", "delivery", "webhooks")
KILLS = 2
MESSAGES = 25  # between two kills
CALLERS = 5
REFUSED = "554 5.7.1 not wanted"
LATER = "451 4.3.0 later"
MOMENT_SECONDS = 0.02


def moody_host(chance: random.Random) -> Callable[[Sequence[str]], str]:
    """Accepts most messages, defers some and refuses some permanently."""
    return lambda _: chance.choices((sinks.ACCEPTED, LATER, REFUSED), weights=(6, 1, 3))[0]


async def send_some(callers: service_process.Callers, name: str) -> None:
    """Callers send their share, one message after the other."""

    async def work(caller: int) -> None:
        for number in range(caller, MESSAGES, CALLERS):
            await callers.send(f"{name}-{number}")

    async with asyncio.TaskGroup() as group:
        for caller in range(CALLERS):
            group.create_task(work(caller))


@pytest.mark.parametrize("seed", range(1, profile.SCALE + 1))
async def test_every_acknowledged_recipient_has_exactly_one_event(url: str, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    async with sinks.running() as sink, webhook_server.running(tls=False) as receiver:
        sink.answer, receiver.answer = moody_host(chance), webhook_processes.moody(chance)
        tables = {**delivery_harness.sections(sink), **webhook_processes.sections()}
        async with webhook_processes.process(tmp_path / "process", url, tables, roles=ROLES) as service:
            await service.start()
            async with service_process.calling(service) as callers, delivery_harness.open_context(url, tables) as ctx:
                endpoint = await webhook_processes.subscribe(ctx, callers.account.id, receiver.url)
                desk = webhook_processes.EndpointHarness(ctx, endpoint)
                post = delivery_harness.DeliveryHarness(ctx, callers.account.id)
                for kill in range(KILLS):
                    sending = asyncio.create_task(send_some(callers, str(kill)))
                    await webhook_processes.got(receiver, len(receiver.requests) + chance.randrange(5, MESSAGES))
                    await asyncio.sleep(chance.uniform(0, MOMENT_SECONDS))
                    await service.kill()
                    await post.audit()
                    await post.end_leases()
                    await desk.end_leases()
                    await service.start()
                    await sending
                await post.finished()
                await desk.finished()
                assert await service.stop() == 0
                assert service.errors() == []
                await prove(desk, callers, receiver)
                code, printed = await service.command("verify")
                assert (code, printed["findings"]) == (0, [])


async def prove(
    desk: webhook_processes.EndpointHarness, callers: service_process.Callers, receiver: webhook_server.WebhookServer
) -> None:
    """What the endpoint knows, each event once, is what the store says of whom callers were promised."""
    written = [delivery.event_id for delivery in await desk.deliveries()]
    await desk.prove(written, receiver)
    received = [json.loads(got[0]) for got in webhook_processes.bodies(receiver).values()]
    heard = sorted((one["data"]["email_id"], one["data"]["recipient_id"], one["type"]) for one in received)
    ended: list[tuple[str, str, str]] = []
    for answer in callers.receipts.values():
        message_id = json.loads(answer.body)["id"]
        async with desk.ctx.store.reading() as tx:
            found = await messages.recipients(tx, callers.account.id, message_id)
        assert len(found) == service_process.UNIQUE_RECIPIENTS
        ended += [(message_id, one.id, events.OF_STATUS[statuses.RecipientStatus(one.status)]) for one in found]
    assert heard == sorted(ended)
    assert len(ended) == KILLS * MESSAGES * service_process.UNIQUE_RECIPIENTS
    assert {kind for *_, kind in heard} >= {events.EventType.DELIVERED, events.EventType.BOUNCED}
