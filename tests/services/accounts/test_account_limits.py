"""Limits that an operator sets for an account: stored, told by its audit log, and used by the next request."""

import pytest

from postroad import context, errors
from postroad.services import audit_log
from postroad.services.accounts import account_registry
from postroad.services.people import api_keys, authentication, credentials
from tests import contexts


async def test_limits_are_stored_told_by_the_audit_log_and_known_to_callers_at_once(
    ctx: context.Context, clock: contexts.Clock, account_id: str
) -> None:
    credential, password = await credentials.create(ctx, account_id, "shop")
    _, secret = await api_keys.create(ctx, account_id, name="shop", credential_id=None, scopes=frozenset({"send"}))

    async def rates() -> list[int | None]:
        with_key = await authentication.authenticate(ctx, f"Bearer {secret}", client_address="192.0.2.1")
        with_password = await authentication.authenticate_password(
            ctx, credential.username, password, client_address="192.0.2.1"
        )
        return [with_key.request_rate, (await authentication.renew(ctx, with_password)).request_rate]

    assert await rates() == [None, None]
    for rate, recipients in ((20, 5_000), (20, 5_000), (None, None)):
        clock.pass_seconds(1)
        await account_registry.change_limits(ctx, account_id, request_rate=rate, recipients_per_day=recipients)
        found = await account_registry.find(ctx, account_id)
        assert (found.request_rate, found.recipients_per_day) == (rate, recipients)
        assert await rates() == [rate, rate]
    for amount in (0, -1, 1_000_000_001):
        with pytest.raises(errors.InvalidRequest, match=r"^request_rate: must be from 1 to 1000000$"):
            await account_registry.change_limits(ctx, account_id, request_rate=amount, recipients_per_day=None)
        with pytest.raises(errors.InvalidRequest, match=r"^recipients_per_day: must be from 1 to 1000000000$"):
            await account_registry.change_limits(ctx, account_id, request_rate=None, recipients_per_day=amount)
    written = await audit_log.page(ctx, account_id, before=None, limit=9)
    assert [audit_log.text(entry) for entry in written if entry.action == "account.limits_changed"] == [
        "changed the limits of the account Shop (the default rate and no daily limit)",
        "changed the limits of the account Shop (20 sends per second and 5,000 recipients per day)",
    ]
