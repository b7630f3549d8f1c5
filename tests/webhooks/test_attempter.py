"""Attempting: a bug in one attempt is loud, counts as an attempt, and stops nothing."""

import pytest

from postroad.services.webhooks import signed_requests as webhook_attempt
from postroad.storage.mail import webhooks
from postroad.webhooks import engine
from tests import webhook_server
from tests.contexts import SECOND
from tests.webhooks import webhook_harness


async def test_a_bug_in_one_attempt_is_logged_and_the_others_go_on(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with webhook_server.running(tls=False) as server, webhook_harness.opened(url) as harness:
        broken, well = await harness.endpoint(server.url), await harness.endpoint(server.url)
        unseal = webhook_attempt.decrypt_secret

        def unseal_or_fail(ctx: object, row: webhooks.Secret) -> str:
            if row.webhook_id == broken.id:
                raise LookupError("a bug")
            return unseal(ctx, row)  # type: ignore[arg-type]

        monkeypatch.setattr(webhook_attempt, "decrypt_secret", unseal_or_fail)
        async with harness.delivering(errors=True):
            failed = await harness.settle(broken, await harness.write(broken))
            assert (await harness.settle(well, await harness.write(well))).standing == ("succeeded", 1)
        assert failed.standing == ("waiting", 1)
        assert failed.delivery.due_at == harness.clock.now + 5 * SECOND
        assert failed.attempts[0].error == engine.INTERNAL_ERROR
        assert len(server.requests) == 1
        assert harness.events() == ["webhook_attempt_failed", "webhook_retry_scheduled", "webhook_delivered"]
        assert harness.log[0]["log_level"] == "error"


async def test_a_bug_gives_its_place_back(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: object, **__: object) -> None:
        raise LookupError("a bug")

    monkeypatch.setattr(webhook_attempt, "attempt", fail)
    async with webhook_harness.opened(url) as harness:
        endpoint = await harness.endpoint("http://127.0.0.1:9/")
        await harness.write(endpoint)
        parts = harness.parts(slots=1)
        assert await parts.dispatching.step() is None
        assert parts.shares.free == 0
        await parts.finish()
        assert parts.shares.free == 1
        assert harness.ctx.metrics.webhook_connections.values == {(): 0}
