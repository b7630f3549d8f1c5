"""The three schemes: who is recognised, with which rights, and who is not."""

import base64

import msgspec
import pytest

from postroad import context, errors
from postroad.keys import installation_keys
from postroad.model.people import callers
from postroad.model.units import identifiers
from postroad.protocol.text import http_values
from postroad.services.accounts import account_registry as accounts
from postroad.services.people import api_keys, authentication, credentials, logins, tokens
from postroad.services.people import users as account_users
from postroad.storage.people import credentials as stored_api_keys
from postroad.storage.people import users
from tests.contexts import Clock
from tests.services.people.argon_watch import Argon

HERE = "192.0.2.1"
SEND_AND_READ = frozenset({callers.Permission.SEND, callers.Permission.READ})


def basic(username: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{username}:{password}".encode()).decode()


def bearer(token: str) -> str:
    return f"Bearer {token}"


async def who_is(ctx: context.Context, field: str | None) -> callers.Caller:
    return await authentication.authenticate(ctx, field, client_address=HERE)


async def new_key(ctx: context.Context, account_id: str, credential: stored_api_keys.Credential) -> str:
    scopes = frozenset({callers.Permission.SEND})
    _, secret = await api_keys.create(ctx, account_id, credential_id=credential.id, name="key", scopes=scopes)
    return secret


async def test_an_smtp_credential_sends_and_reads(ctx: context.Context, account_id: str) -> None:
    credential, password = await credentials.create(ctx, account_id, "main")
    found = await who_is(ctx, basic(credential.username, password))
    assert found == callers.Caller(account_id, credential.id, callers.Scheme.PASSWORD, SEND_AND_READ)


async def test_an_api_key_sends_with_the_scope_of_its_credential(ctx: context.Context, account_id: str) -> None:
    await credentials.create(ctx, account_id, "first")
    credential, _ = await credentials.create(ctx, account_id, "second")
    found = await who_is(ctx, bearer(await new_key(ctx, account_id, credential)))
    (key,) = await api_keys.of_account(ctx, account_id)
    assert found == callers.Caller(
        account_id,
        credential.id,
        callers.Scheme.API_KEY,
        frozenset({callers.Permission.SEND}),
        key=callers.ApiKey(key.id, "key", frozenset({callers.Scope.SEND})),
    )


async def test_a_scope_that_keys_cannot_have_gives_nothing(ctx: context.Context, account_id: str, clock: Clock) -> None:
    credential, _ = await credentials.create(ctx, account_id, "main")
    secret = installation_keys.new_api_key()
    key = stored_api_keys.ApiKey(
        id=ctx.new_id(identifiers.API_KEY, now=clock.now),
        account_id=account_id,
        credential_id=credential.id,
        name="key",
        hint="…",
        scopes="send view change admin",
        created_at=clock.now,
        last_used_at=None,
        revoked_at=None,
    )
    async with ctx.store.transaction() as tx:
        await stored_api_keys.insert_key(tx, key, key_hash=installation_keys.hash_api_key(secret))
    found = await who_is(ctx, bearer(secret))
    assert found.permissions == {callers.Permission.SEND}
    assert found.key is not None
    assert found.key.scopes == {callers.Scope.SEND}


async def test_a_token_acts_for_its_account_in_the_scope_of_its_first_credential_if_there_is_one(
    ctx: context.Context, account_id: str, owner: users.User, clock: Clock
) -> None:
    session = await logins.issue_token(ctx, owner)
    assert (await who_is(ctx, bearer(session.token))).credential_id is None
    first, _ = await credentials.create(ctx, account_id, "first")
    clock.pass_seconds(1)
    await credentials.create(ctx, account_id, "second")
    found = await who_is(ctx, bearer(session.token))
    assert (found.account_id, found.credential_id, found.scheme) == (account_id, first.id, callers.Scheme.TOKEN)
    assert (found.user_id, found.expires_at) == (owner.id, session.expires_at)
    assert found.token_id
    assert identifiers.is_identifier(found.token_id, identifiers.TOKEN)


@pytest.mark.parametrize("role", [callers.Role.DEVELOPER, callers.Role.READ_ONLY])
async def test_a_role_counts_as_the_store_has_it_and_not_as_the_token_says(
    ctx: context.Context, account_id: str, clock: Clock, role: callers.Role
) -> None:
    user, _ = await account_users.create(ctx, account_id, email="jo@example.com", password=None, role=role)
    issued = (await logins.issue_token(ctx, user)).session.claims
    claims = msgspec.structs.replace(issued, role="owner")
    found = await who_is(ctx, bearer(tokens.sign(claims, ctx.keys.token)))
    assert found.permissions == callers.ROLE_PERMISSIONS[role]


async def test_a_token_of_nobody_or_for_another_account_than_its_users_is_refused(
    ctx: context.Context, owner: users.User, clock: Clock
) -> None:
    other = await accounts.create(ctx, "Other")
    claims = (await logins.issue_token(ctx, owner)).session.claims
    for change in ({"acc": other.id}, {"sub": ctx.new_id(identifiers.USER, now=clock.now)}):
        forged = msgspec.structs.replace(claims, **change)
        with pytest.raises(errors.Unauthorized):
            await who_is(ctx, bearer(tokens.sign(forged, ctx.keys.token)))


async def test_an_unknown_name_a_wrong_password_and_a_revoked_credential_get_the_same_answer_for_the_same_work(
    ctx: context.Context, account_id: str, argon: Argon
) -> None:
    credential, _ = await credentials.create(ctx, account_id, "main")
    revoked, password = await credentials.create(ctx, account_id, "old")
    await credentials.revoke(ctx, account_id, revoked.id)
    texts = set()
    for username in (credential.username, revoked.username, "smtp_nobody"):
        with pytest.raises(errors.Unauthorized) as refusal:
            await who_is(ctx, basic(username, password))
        texts.add(refusal.value.message)
    assert len(texts) == 1
    assert argon.costs == [argon.costs[0]] * 3


async def test_odd_usernames_and_passwords_are_wrong_and_nothing_worse(ctx: context.Context, account_id: str) -> None:
    username = (await credentials.create(ctx, account_id, "main"))[0].username
    odd_names = ("", "nul\0nul", "line\nbreak", "x" * 65, "x" * 2000, "smtp_\ud7ff", "' OR 1=1")
    odd_passwords = ("", "x" * 257, "x" * 1500, "nul\0nul")
    for pair in [(name, "password") for name in odd_names] + [(username, password) for password in odd_passwords]:
        with pytest.raises(errors.Unauthorized):
            await who_is(ctx, basic(*pair))


async def test_an_unknown_api_key_is_refused_and_one_with_a_wrong_checksum_without_the_store(
    ctx: context.Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = installation_keys.new_api_key()
    with pytest.raises(errors.Unauthorized, match="unknown or revoked"):
        await who_is(ctx, bearer(key))
    other_end = "0" if key[-1] != "0" else "1"
    monkeypatch.delattr(type(ctx.store), "reading")
    for spoilt in (key[:-1] + other_end, key[:-1], key + "0", key[:20], installation_keys.API_KEY_PREFIX):
        with pytest.raises(errors.Unauthorized, match="checksum"):
            await who_is(ctx, bearer(spoilt))


async def test_a_token_is_no_api_key_and_no_password(ctx: context.Context, account_id: str, owner: users.User) -> None:
    credential, password = await credentials.create(ctx, account_id, "main")
    token = (await logins.issue_token(ctx, owner)).token
    for field in (basic(credential.username, token), basic(owner.email, token), bearer(password), basic(token, "")):
        with pytest.raises(errors.Unauthorized):
            await who_is(ctx, field)


async def test_what_is_known_shows_no_secret(ctx: context.Context, account_id: str) -> None:
    credential, password = await credentials.create(ctx, account_id, "main")
    presented = http_values.Basic(credential.username, password)
    known = await authentication.identify(ctx, presented, client_address=HERE)
    assert password not in repr((presented, known, credential))
    assert credential.password_hash not in repr((presented, known, credential))
