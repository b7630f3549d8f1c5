"""Webhooks in the format of an extension that is not installed: events wait, and are sent when it is."""

import msgspec

from postroad.model.bounces import disposition
from postroad.services.accounts import account_registry
from postroad.services.operations.checks import data, findings
from postroad.services.webhooks import endpoint_settings, endpoints
from postroad.storage.mail import webhooks
from tests import event_formats, webhook_endpoints, webhook_server
from tests.services import claimed_mail
from tests.webhooks import webhook_harness


async def test_events_wait_for_their_extension_and_are_translated_then(database_url: str) -> None:
    async with webhook_server.running(tls=False) as server, webhook_harness.opened(database_url) as harness:
        without = harness.ctx
        account = await account_registry.create(without, "Shop")
        wanted = endpoint_settings.Changes(url=server.url, format_events=["sent", "arrived"])
        harness.ctx = event_formats.with_format(without)
        endpoint = (await endpoints.create(harness.ctx, account.id, wanted, of_format="other")).webhook
        harness.ctx = without
        # Only what has arrived is wanted when the event is written, and the rest when it was accepted.
        _, (claimed,) = await claimed_mail.accepted(without, account.id, "ada@example.net")
        less = endpoint_settings.Changes(format_events=["arrived"])
        await endpoints.change(event_formats.with_format(without), account.id, endpoint.id, less)
        await without.outcome_commits.submit([claimed_mail.outcome(without, claimed, disposition.Verdict.DELIVERED)])
        waiting = sorted(await webhook_endpoints.deliveries_for(without, endpoint), key=lambda row: row.event_type)
        assert [msgspec.json.decode(row.body)["format"] for row in waiting] == ["untranslated"] * 2
        assert [msgspec.json.decode(row.body)["type"] for row in waiting] == ["email.accepted", "email.delivered"]
        other = await harness.endpoint(f"{server.url}/own")
        async with harness.delivering():
            await harness.settle(other, await harness.write(other))
        assert [request.path for request in server.requests] == ["/hook/own"]
        (line,) = [line for line in harness.log if line["event"] == "webhook_format_missing"]
        assert line["format"] == "other"
        (found,) = await data.event_formats(await findings.of_context(without))
        assert found.state is findings.State.ERROR
        assert "'other'" in found.found
        harness.ctx = event_formats.with_format(without)
        async with harness.delivering():
            seen = await harness.settle(endpoint, waiting[1].id)
        assert seen.standing == (webhooks.State.SUCCEEDED, 1)
        sent = server.requests[-1].body
        assert sent == seen.delivery.body == b'{"what":"arrived","to":"ada@example.net"}'
        assert [row.id for row in await webhook_endpoints.deliveries_for(without, endpoint)] == [waiting[1].id]
