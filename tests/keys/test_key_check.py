"""A process with a key that does not fit the database does not start."""

import msgspec
import pytest

from postroad import config, context, errors
from postroad.keys import installation_keys, key_check
from postroad.mail.signing import domain_keys
from postroad.roles import composition
from postroad.services.domains import domain_registry as domains
from postroad.services.webhooks import endpoints
from postroad.storage.operations import installation_key
from postroad.storage.people import accounts as stored_accounts
from tests.contexts import SECRET_KEY

OTHER_KEY = "another: 2Lr9Xd7Yq0wT4nZs5Kf8Hb1Vc6Jm3PgAq"
URL = "https://hooks.example.com/"


def with_key(settings: config.Settings, key: str) -> config.Settings:
    return msgspec.structs.replace(settings, security=msgspec.structs.replace(settings.security, installation_key=key))


async def state_of(ctx: context.Context, key: str) -> key_check.KeyState:
    async with ctx.store.reading() as tx:
        return await key_check.state(tx, installation_keys.Keys.derive(key.encode()))


async def test_the_first_start_stores_a_fingerprint_that_is_not_the_key(ctx: context.Context) -> None:
    async with ctx.store.reading() as tx:
        stored = await installation_key.fingerprint(tx)
    assert stored is not None
    assert len(stored) == 32
    assert stored == ctx.keys.fingerprint
    assert stored not in {ctx.keys.token, ctx.keys.session, ctx.keys.return_path, ctx.keys.encryption}
    assert await state_of(ctx, SECRET_KEY) is key_check.KeyState.FITS
    assert await state_of(ctx, OTHER_KEY) is key_check.KeyState.WRONG


async def test_another_key_is_refused_with_one_sentence_that_shows_no_key(
    ctx: context.Context, settings: config.Settings
) -> None:
    with pytest.raises(key_check.WrongKeyError) as refused:
        async with composition.open_context(with_key(settings, OTHER_KEY)):
            pass
    assert str(refused.value) == (
        "the installation key does not match this database: set security.installation_key or "
        "security.installation_key_file to the key that was used before; if 'postroad key rotate' was interrupted, "
        "run it again"
    )
    async with composition.open_context(settings) as again:
        assert again.keys == ctx.keys


async def test_a_database_without_a_fingerprint_takes_the_first_key(
    ctx: context.Context, settings: config.Settings
) -> None:
    async with ctx.store.transaction() as tx:
        await tx.run_script("DELETE FROM installation_key")
    assert await state_of(ctx, OTHER_KEY) is key_check.KeyState.UNUSED
    async with composition.open_context(with_key(settings, OTHER_KEY)):
        pass
    assert await state_of(ctx, SECRET_KEY) is key_check.KeyState.WRONG


async def test_nothing_is_encrypted_with_a_key_that_was_replaced(
    ctx: context.Context, account: stored_accounts.Account
) -> None:
    async with ctx.store.transaction() as tx:
        await installation_key.replace(tx, b"of another key")
    domain = await domains.add(ctx, account.id, "example.com", verified=False)
    with pytest.raises(errors.ServiceUnavailable, match="must be restarted"):
        await domain_keys.record(ctx, domain)
    with pytest.raises(errors.ServiceUnavailable, match="must be restarted"):
        await endpoints.save(ctx, account.id, url=URL)
    assert await endpoints.find(ctx, account.id) is None
