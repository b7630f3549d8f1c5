"""Attempting: a bug in one attempt is loud, counts as an attempt, and stops nothing."""

import pytest

from postroad.services import telling, webhook_secrets
from postroad.storage import webhooks
from postroad.webhooks import attempting
from tests import webhook_receivers
from tests.contexts import SECOND
from tests.webhooks import offices


async def test_a_bug_in_one_attempt_is_logged_and_the_others_go_on(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with webhook_receivers.receiving(tls=False) as receiver, offices.opened(url) as office:
        broken, well = await office.endpoint(receiver.url), await office.endpoint(receiver.url)
        unseal = webhook_secrets.unseal

        def unseal_or_fail(ctx: object, row: webhooks.Secret) -> str:
            if row.webhook_id == broken.id:
                raise LookupError("a bug")
            return unseal(ctx, row)  # type: ignore[arg-type]

        monkeypatch.setattr(webhook_secrets, "unseal", unseal_or_fail)
        async with office.telling(errors=True):
            failed = await office.settle(broken, await office.write(broken))
            assert (await office.settle(well, await office.write(well))).standing == ("succeeded", 1)
        assert failed.standing == ("waiting", 1)
        assert failed.delivery.due_at == office.clock.now + 5 * SECOND
        assert failed.attempts[0].error == attempting.BROKEN
        assert len(receiver.requests) == 1
        assert office.events() == ["webhook_attempt_broken", "webhook_tried", "webhook_delivered"]
        assert office.log[0]["log_level"] == "error"


async def test_a_bug_gives_its_place_back(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: object, **__: object) -> None:
        raise LookupError("a bug")

    monkeypatch.setattr(telling, "attempt", fail)
    async with offices.opened(url) as office:
        endpoint = await office.endpoint("http://127.0.0.1:9/")
        await office.write(endpoint)
        parts = office.parts(places=1)
        assert await parts.dispatching.step() is None
        assert parts.shares.free == 0
        await parts.finish()
        assert parts.shares.free == 1
        assert office.ctx.metrics.webhook_connections.values == {(): 0}


async def test_there_may_be_nothing_to_finish(url: str) -> None:
    async with offices.opened(url) as office:
        await office.parts().attempting.finish(grace_seconds=0)
