"""The engine notes when an endpoint begins to fail, and when it works again."""

from postroad.services.webhooks import endpoints
from tests import webhook_server
from tests.webhooks import webhook_harness


async def test_failing_begins_with_a_failure_and_ends_with_a_success(database_url: str) -> None:
    async with webhook_server.running(tls=False) as server, webhook_harness.opened(database_url) as harness:
        endpoint = await harness.endpoint(server.url)

        async def is_failing(*, wanted: bool) -> bool:
            found = await endpoints.get(harness.ctx, endpoint.account_id, endpoint.id)
            return (found.failing_since is not None) == wanted

        server.answer = webhook_server.ok(500, b"no")
        failed = await harness.write(endpoint)
        async with harness.delivering():
            await harness.settle(endpoint, failed)
            await webhook_harness.until(lambda: is_failing(wanted=True))
            server.answer = webhook_server.ok(204, b"")
            await harness.settle(endpoint, await harness.write(endpoint))
            await webhook_harness.until(lambda: is_failing(wanted=False))
