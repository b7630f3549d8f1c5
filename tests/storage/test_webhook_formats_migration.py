"""The migration to formats of webhooks, from the version before."""

import msgspec
import pytest

from postroad.storage import webhooks
from postroad.storage.store import ConstraintViolated, Store
from tests.storage import samples
from tests.storage.schema_upgrade import SchemaUpgrade


async def test_a_neighbour_of_the_version_before_sees_no_endpoint_in_the_format_of_another_service(
    empty: Store, upgrade: SchemaUpgrade
) -> None:
    await upgrade.begin("webhook_formats")
    samples.teach(
        empty,
        enabled="SELECT id FROM webhook_endpoints WHERE account_id = 'acc_1' AND removed_at IS NULL AND enabled = 1",
        secrets="""SELECT webhook_secrets.webhook_id FROM webhook_endpoints JOIN webhook_secrets
            ON webhook_secrets.webhook_id = webhook_endpoints.id""",
    )
    first = webhooks.Webhook("whk_1", "acc_1", "https://one.example/", "email.failed", 1, "whsec_1", 5, 6)
    async with empty.transaction() as tx:
        await tx.run_script("""
            INSERT INTO webhooks (id, account_id, url, events, enabled, secret_hint, created_at, updated_at)
            VALUES ('whk_1', 'acc_1', 'https://one.example/', 'email.failed', 1, 'whsec_1', 5, 6);
            INSERT INTO additional_webhooks (id, account_id, url, events, enabled, secret_hint, created_at, updated_at)
            VALUES ('whk_2', 'acc_1', 'https://one.example/', 'email.failed', 1, 'whsec_1', 5, 6)""")
    await upgrade.finish()
    second = msgspec.structs.replace(first, id="whk_2", is_first=0)
    theirs = msgspec.structs.replace(
        second, id="whk_3", format="resend", format_events="email.sent", request_headers=b"sealed"
    )
    async with empty.transaction() as tx:
        await webhooks.insert(tx, theirs)
        await webhooks.add_secret(tx, webhooks.Secret("acc_1", "whk_3", 1, b"sealed", 5, None), hint="whsec_1")
        theirs = msgspec.structs.replace(theirs, updated_at=5)
        assert await webhooks.of_account(tx, "acc_1") == [first, second, theirs]
        assert list(await webhooks.enabled(tx, ["whk_3"])) == ["whk_3"]
        assert sorted(row[0] for row in await tx.fetch("test.enabled")) == ["whk_1", "whk_2"]
        assert await tx.fetch("test.secrets") == []
        await webhooks.update(tx, msgspec.structs.replace(theirs, format_events="email.failed", request_headers=None))
        changed = await webhooks.by_id(tx, "acc_1", "whk_3")
        assert changed is not None
        assert (changed.format, changed.format_events, changed.request_headers) == ("resend", "email.failed", None)
    with pytest.raises(ConstraintViolated):
        async with empty.transaction() as tx:
            await tx.run_script("UPDATE additional_webhooks SET format = 'another'")
