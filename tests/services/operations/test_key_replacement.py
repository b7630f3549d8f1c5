"""The installation key is replaced in one transaction; what the old one signed is accepted until it ends."""

import dataclasses
import re

import pytest

from postroad import config, context, errors
from postroad.keys import encryption, key_check
from postroad.mail import return_path
from postroad.mail.signing import domain_keys
from postroad.model.people import callers
from postroad.roles import composition
from postroad.services import audit_log
from postroad.services.domains import domain_registry as domains
from postroad.services.operations import cleanup, key_replacement
from postroad.services.people import authentication, logins, second_factors, sessions
from postroad.services.webhooks import endpoints, signed_requests
from postroad.storage.engine import migrations
from postroad.storage.mail import webhooks
from postroad.storage.operations import certificates
from postroad.storage.operations import installation_key as stored_values
from postroad.storage.people import accounts as stored_accounts
from postroad.storage.people import users
from tests import contexts
from tests.contexts import SECRET_KEY, Clock
from tests.keys.test_key_check import OTHER_KEY, URL, with_key
from tests.services.people import authenticator

THIRD_KEY = "the third: 9Xd7Yq0wT4nZs5Kf8Hb1Vc6Jm3PgAqLr2"
DAY_SECONDS = 24 * 3600


async def rotate(ctx: context.Context, new: str = OTHER_KEY, *, old: str = SECRET_KEY) -> int:
    return await key_replacement.rotate(ctx, old=old.encode(), new=new.encode())


async def secrets_of(ctx: context.Context, account_id: str) -> list[str]:
    webhook = await endpoints.find(ctx, account_id)
    assert webhook is not None
    async with ctx.store.reading() as tx:
        return [
            signed_requests.decrypt_secret(ctx, row)
            for row in await webhooks.secrets(tx, [webhook.id], now=ctx.clock())
        ]


async def test_every_secret_opens_with_the_new_key_and_none_with_the_old(
    ctx: context.Context, account: stored_accounts.Account, settings: config.Settings
) -> None:
    domain = await domains.add(ctx, account.id, "example.com", verified=False)
    record = await domain_keys.record(ctx, domain)
    key = await domain_keys.signing_key(ctx, account.id, "example.com")
    secret = (await endpoints.save(ctx, account.id, url=URL)).secret
    assert await rotate(ctx) == 3  # RSA, Ed25519 and the webhook
    with pytest.raises(encryption.DecryptionError):
        await domain_keys.signing_key(ctx, account.id, "example.com")
    with pytest.raises(key_check.WrongKeyError):
        async with composition.open_context(settings):
            pass
    async with composition.open_context(with_key(settings, OTHER_KEY)) as new:
        assert await domain_keys.signing_key(new, account.id, "example.com") == key
        assert await domain_keys.record(new, domain) == record
        assert await secrets_of(new, account.id) == [secret]
        (entry,) = await audit_log.page(new, audit_log.INSTALLATION, before=None, limit=9)
    assert audit_log.text(entry) == "rotated the installation key and re-encrypted 3 secrets"
    assert (entry.actor, entry.detail) == ("operator", "")


async def test_keys_of_certificates_open_with_the_new_key(ctx: context.Context, settings: config.Settings) -> None:
    key = certificates.Key("https://ca.example/directory", "mail.example.com")

    def seal(secret: bytes, owner: str) -> bytes:
        return encryption.encrypt(ctx.keys.encryption, secret, owner=owner, nonce=b"1" * 12)

    async with ctx.store.transaction() as tx:
        account_key = seal(b"account", "the ACME account at https://ca.example/directory")
        await certificates.put_account(tx, certificates.AcmeAccount(key.directory, account_key, "https://ca.example/1"))
        # Another order has been claimed, and has no certificate yet.
        assert await certificates.claim(tx, certificates.Key("", "b.example"), due_by=1, now=1, until=2)
        assert await certificates.claim(tx, key, due_by=1, now=1, until=2)
        owner = "the certificate of mail.example.com from https://ca.example/directory"
        await certificates.put(
            tx, key, chain="chain", private_key=seal(b"key", owner), issued_at=1, expires_at=9, due_at=5
        )
    assert await rotate(ctx) == 2
    async with composition.open_context(with_key(settings, OTHER_KEY)) as new, new.store.reading() as tx:
        account, found = await certificates.acme_account(tx, key.directory), await certificates.find(tx, key)
        assert account is not None
        assert found is not None
        owner = encryption.acme_account_owner(key.directory)
        assert encryption.decrypt(new.keys.encryption, account.private_key, owner=owner) == b"account"
        owner = encryption.certificate_owner(*key)
        assert encryption.decrypt(new.keys.encryption, found.private_key, owner=owner) == b"key"


async def test_what_the_old_keys_signed_is_accepted_for_a_while(
    ctx: context.Context, owner: users.User, settings: config.Settings, clock: Clock
) -> None:
    token = (await logins.issue_token(ctx, owner)).token
    session = await contexts.begin_session(ctx, owner)
    form = sessions.csrf_token(ctx, session)
    path = return_path.address(
        ctx.keys.return_path, message_id="em_" + "0" * 28, recipient_id="rcp_" + "1" * 28, domain="example.com"
    )
    await rotate(ctx)
    async with composition.open_context(with_key(settings, OTHER_KEY), clock=clock) as second:
        await rotate(second, THIRD_KEY, old=OTHER_KEY)
    async with composition.open_context(with_key(settings, THIRD_KEY), clock=clock) as new:
        who = await authentication.authenticate(new, f"Bearer {token}", client_address="192.0.2.1")
        assert (who.user_id, who.scheme) == (owner.id, callers.Scheme.TOKEN)
        who, resumed = await sessions.authenticate(new, session.token)
        assert who.user_id == owner.id
        assert sessions.is_csrf_token(new, resumed, form)
        assert not sessions.is_csrf_token(new, resumed, form[::-1])
        assert sessions.is_csrf_token(new, resumed, sessions.csrf_token(new, resumed))
        named = return_path.named_by(new.keys, path)
        assert named is not None
        assert named.message_id == "em_" + "0" * 28
        clock.pass_seconds(30 * DAY_SECONDS)
        assert (await cleanup.sweep(new)).previous_keys == 0
        clock.pass_seconds(1)
        assert (await cleanup.sweep(new)).previous_keys == 2
    async with composition.open_context(with_key(settings, THIRD_KEY), clock=clock) as later:
        assert later.keys.previous == ()
        assert return_path.named_by(later.keys, path) is None


async def test_a_key_can_be_used_again(ctx: context.Context, settings: config.Settings) -> None:
    await rotate(ctx)
    async with composition.open_context(with_key(settings, OTHER_KEY)) as second:
        await rotate(second, SECRET_KEY, old=OTHER_KEY)
    async with composition.open_context(settings) as again:
        assert [keys.fingerprint for keys in again.keys.previous] == [second.keys.fingerprint]


async def test_a_rotation_that_fails_changes_nothing(
    ctx: context.Context, account: stored_accounts.Account, settings: config.Settings
) -> None:
    secret = (await endpoints.save(ctx, account.id, url=URL)).secret
    with pytest.raises(errors.InvalidRequest, match="is the current one"):
        await rotate(ctx, SECRET_KEY)
    # Randomness that fails at the last of the three: after the secret and before the audit log.
    left = [b"1" * 12]
    broken = dataclasses.replace(ctx, entropy=lambda _: left.pop())
    with pytest.raises(IndexError):
        await rotate(broken)
    async with composition.open_context(settings) as again:
        assert await secrets_of(again, account.id) == [secret]


async def test_of_two_rotations_at_once_one_is_refused(ctx: context.Context, settings: config.Settings) -> None:
    async with composition.open_context(settings) as other:
        await rotate(ctx)
        with pytest.raises(errors.Conflict, match="a moment ago"):
            await rotate(other, THIRD_KEY)


def test_every_table_with_ciphertexts_is_covered() -> None:
    """A new column of bytes is either not encrypted, and listed here, or re-encrypted by a rotation."""
    scripts = " ".join(one.script for one in migrations.known("sqlite"))
    columns = {
        f"{table}.{column}"
        for table, body in re.findall(r"CREATE TABLE (\w+) \((.*?)\n\)", scripts, re.DOTALL)
        for column in re.findall(r"^\s+(\w+) BLOB", body, re.MULTILINE)
    } | {f"{table}.{column}" for table, column in re.findall(r"ALTER TABLE (\w+) ADD COLUMN (\w+) BLOB", scripts)}
    plain = {
        "api_keys.key_hash",
        "approvals.body",
        "approvals.body_hash",
        "bodies.mime",
        "dkim_keys.public_key",
        "idempotency_keys.body_hash",
        "idempotency_keys.response",
        "installation_key.fingerprint",
        "login_failures.counter",
        "messages.response",
        "passkeys.credential_id",
        "passkeys.public_key",
        "passkeys.user_handle",
        "password_links.token_hash",
        "pending_logins.invitation",
        "pending_logins.token_hash",
        "previous_keys.fingerprint",
        "received_bodies.mime",
        "received_messages.fingerprint",
        "recovery_codes.code_hash",
        "request_log.body",
        "used_challenges.challenge_hash",
        "webhook_deliveries.body",
    }
    sealed = {
        "acme_accounts.private_key",
        "certificates.private_key",
        "dkim_keys.private_key",
        "previous_keys.installation_key",
        "sso_connections.client_secret",
        "totp_secrets.secret",
        "webhook_secrets.secret",
        "webhooks.request_headers",
    }
    assert columns == plain | sealed
    assert stored_values.ENCRYPTED_TABLES.keys() == encryption.OWNERS.keys()
    assert stored_values.ENCRYPTED_TABLES.keys() == {
        column.partition(".")[0] for column in sealed - {"previous_keys.installation_key"}
    }


async def test_an_authenticator_app_works_with_the_new_key(
    ctx: context.Context, owner: users.User, settings: config.Settings, clock: Clock
) -> None:
    secret, codes = await authenticator.set_up(ctx, owner, clock)
    found = await authenticator.login_of(ctx, owner)
    assert await rotate(ctx) == 1
    clock.pass_seconds(60)
    async with composition.open_context(with_key(settings, OTHER_KEY), clock=clock) as new:
        assert await second_factors.check_code(new, found, authenticator.code(secret, clock)) == "totp"
        assert await second_factors.check_code(new, found, codes[0]) == "recovery_code"
