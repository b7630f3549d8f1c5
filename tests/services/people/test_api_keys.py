"""API keys are issued under a credential, shown once, stored hashed, and stop at once with it or alone."""

import pytest

from postroad import context, errors
from postroad.keys import installation_keys
from postroad.model.mail import statuses
from postroad.model.people import callers
from postroad.services import audit_log
from postroad.services.accounts import account_registry as accounts
from postroad.services.people import api_keys, authentication, credentials
from postroad.storage.people import credentials as access_version
from tests import contexts

SEND = frozenset({callers.Permission.SEND})
SEND_AND_READ = SEND | {callers.Permission.READ}


async def make(
    ctx: context.Context, account_id: str, *, credential_id: str | None = None, scopes: frozenset[str] = SEND
) -> tuple[access_version.ApiKey, str]:
    return await api_keys.create(ctx, account_id, credential_id=credential_id, name="Shop", scopes=scopes)


async def who_is(ctx: context.Context, secret: str) -> callers.Caller:
    return await authentication.authenticate(ctx, f"Bearer {secret}", client_address="127.0.0.1")


@pytest.mark.parametrize("scopes", [SEND, SEND_AND_READ])
async def test_a_new_key_has_its_scopes_and_only_its_hash_is_stored(
    ctx: context.Context, account_id: str, scopes: frozenset[callers.Permission]
) -> None:
    credential, _ = await credentials.create(ctx, account_id, "Web shop")
    key, secret = await make(ctx, account_id, scopes=scopes)
    assert installation_keys.is_api_key(secret)
    assert secret not in repr(key)
    assert secret.startswith(key.hint.removesuffix("…"))
    assert len(key.hint) < len(secret) / 2
    assert await api_keys.of_account(ctx, account_id) == [key]
    who = await who_is(ctx, secret)
    assert (who.account_id, who.credential_id, who.permissions) == (account_id, credential.id, scopes)


@pytest.mark.parametrize(
    "scopes",
    [
        frozenset(),
        frozenset({"send *"}),
        SEND | {callers.Permission.VIEW},
        SEND | {callers.Permission.CHANGE},
        callers.EVERYTHING,
    ],
)
async def test_a_key_gets_no_other_rights(ctx: context.Context, account_id: str, scopes: frozenset[str]) -> None:
    await credentials.create(ctx, account_id, "Web shop")
    with pytest.raises(errors.InvalidRequest, match=r"^scopes: "):
        await make(ctx, account_id, scopes=scopes)
    assert await api_keys.of_account(ctx, account_id) == []


async def test_the_first_key_of_an_account_creates_its_credential(ctx: context.Context, account_id: str) -> None:
    async def version() -> int:
        async with ctx.store.reading() as tx:
            return await access_version.access_version(tx)

    key, secret = await make(ctx, account_id)
    with_credential = await version()
    again, _ = await make(ctx, account_id)
    # Another key alone invalidates nothing: whatever was cached stays right.
    assert await version() == with_credential
    (credential,) = await credentials.of_account(ctx, account_id)
    assert {key.credential_id, again.credential_id} == {credential.id}
    assert credential.name == "API keys"
    who = await who_is(ctx, secret)
    assert (who.account_id, who.credential_id, who.permissions) == (account_id, credential.id, SEND)
    assert await ctx.passwords.find("", [credential.password_hash]) is None
    logged = [entry.action for entry in await audit_log.page(ctx, account_id, before=None, limit=10)]
    assert logged.count("credential.created") == 1
    assert logged.count("api_key.created") == 2


async def test_without_a_named_credential_it_is_the_oldest_live_one(
    ctx: context.Context, account_id: str, clock: contexts.Clock
) -> None:
    first, _ = await credentials.create(ctx, account_id, "First")
    clock.pass_seconds(1)
    second, _ = await credentials.create(ctx, account_id, "Second")
    assert (await make(ctx, account_id))[0].credential_id == first.id
    assert (await make(ctx, account_id, credential_id=second.id))[0].credential_id == second.id
    await credentials.revoke(ctx, account_id, first.id)
    assert (await make(ctx, account_id))[0].credential_id == second.id


async def test_a_credential_that_is_revoked_unknown_or_of_another_account_is_not_found(
    ctx: context.Context, account_id: str
) -> None:
    other = await accounts.create(ctx, "Other")
    foreign, _ = await credentials.create(ctx, other.id, "Theirs")
    revoked, _ = await credentials.create(ctx, account_id, "Old")
    await credentials.revoke(ctx, account_id, revoked.id)
    messages = set()
    for credential_id in (foreign.id, revoked.id, "cred_" + "0" * 28, "cred_\0", "", "x" * 1000):
        with pytest.raises(errors.NotFound, match=r"^credential_id: ") as refusal:
            await make(ctx, account_id, credential_id=credential_id)
        messages.add(refusal.value.message)
    assert len(messages) == 1


@pytest.mark.parametrize("with_credential", [False, True])
async def test_a_key_stops_at_once_when_it_or_its_credential_is_revoked(
    ctx: context.Context, account_id: str, clock: contexts.Clock, *, with_credential: bool
) -> None:
    credential, _ = await credentials.create(ctx, account_id, "Web shop")
    key, secret = await make(ctx, account_id)
    await who_is(ctx, secret)
    if with_credential:
        await credentials.revoke(ctx, account_id, credential.id)
    else:
        await api_keys.revoke(ctx, account_id, key.id)
        with pytest.raises(errors.NotFound):
            await api_keys.revoke(ctx, account_id, key.id)
    with pytest.raises(errors.Unauthorized):
        await who_is(ctx, secret)
    (listed,) = await api_keys.of_account(ctx, account_id)
    assert listed.revoked_at == clock.now


async def test_an_account_sees_its_own_keys_oldest_first_and_revokes_no_others(
    ctx: context.Context, account_id: str, clock: contexts.Clock
) -> None:
    other = await accounts.create(ctx, "Other")
    foreign, secret = await make(ctx, other.id)
    for key_id in (foreign.id, "key_" + "0" * 28, "", "key_\0", "cred_" + "0" * 28):
        with pytest.raises(errors.NotFound):
            await api_keys.revoke(ctx, account_id, key_id)
    assert await api_keys.of_account(ctx, account_id) == []
    await who_is(ctx, secret)
    made = []
    for _ in range(3):
        clock.pass_seconds(1)
        made.append((await make(ctx, account_id))[0])
    assert await api_keys.of_account(ctx, account_id, limit=2) == made[:2]
    assert await api_keys.of_account(ctx, account_id, after=made[1].id) == made[2:]


@pytest.mark.parametrize("scopes", [{"send", "webhooks"}, {"team"}, {"*"}])
async def test_a_test_key_manages_nothing(ctx: context.Context, account_id: str, scopes: set[str]) -> None:
    await credentials.create(ctx, account_id, "Web shop")
    with pytest.raises(errors.InvalidRequest, match=r"^scopes: a test key can have 'send' and 'read' only"):
        await api_keys.create(
            ctx, account_id, credential_id=None, name="CI", scopes=frozenset(scopes), mode=statuses.Mode.TEST
        )
    assert await api_keys.of_account(ctx, account_id) == []
    key, _ = await api_keys.create(
        ctx, account_id, credential_id=None, name="CI", scopes=frozenset({"send"}), mode=statuses.Mode.TEST
    )
    with pytest.raises(errors.InvalidRequest, match=r"^scopes: a test key can have 'send' and 'read' only"):
        await api_keys.change(ctx, account_id, key.id, scopes=frozenset(scopes))
    assert await api_keys.of_account(ctx, account_id) == [key]
