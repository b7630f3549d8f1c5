"""Keys of domains: made when first needed, one for a domain, sealed in the store."""

import asyncio
import dataclasses
import threading

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from postroad import config, context, errors
from postroad.keys import encryption
from postroad.mail.signing import domain_keys
from postroad.model.delivery import fair_shares
from postroad.protocol.dns import tag_lists
from postroad.roles import composition
from postroad.services.accounts import account_registry as accounts
from postroad.services.domains import domain_registry as domains
from postroad.storage.mail import domains as dkim_keys
from postroad.storage.people import accounts as stored_accounts
from tests import contexts


async def stored_key(ctx: context.Context, account_id: str, domain_id: str) -> dkim_keys.DkimKey | None:
    async with ctx.store.reading() as tx:
        found = await dkim_keys.dkim_keys(tx, account_id, domain_id)
    return next((key for key in found if key.algorithm == "rsa"), None)


async def test_a_record_is_made_once_and_then_always_the_same(
    ctx: context.Context, account: stored_accounts.Account
) -> None:
    domain = await domains.add(ctx, account.id, "Bücher.example", verified=False)
    assert await domain_keys.existing_records(ctx, [domain]) == {}
    record = await domain_keys.record(ctx, domain)
    assert record.name == f"{record.selector}._domainkey.xn--bcher-kva.example"
    assert record.type == "TXT"
    assert await domain_keys.record(ctx, domain) == record
    assert await domain_keys.existing_records(ctx, [domain]) == {domain.id: record}


async def test_the_key_that_signs_belongs_to_the_record(ctx: context.Context, account: stored_accounts.Account) -> None:
    domain = await domains.add(ctx, account.id, "example.com", verified=False)
    key = await domain_keys.signing_key(ctx, account.id, "example.com")
    assert key is not None
    private = serialization.load_der_private_key(key.private_key, None)
    assert isinstance(private, rsa.RSAPrivateKey)
    assert private.key_size == 2048
    public = private.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    record = await domain_keys.record(ctx, domain)
    assert (record.selector, record.value) == (key.selector, tag_lists.dkim_value(public))


@pytest.mark.usefixtures("real_keys")
async def test_processes_that_need_the_first_key_at_one_moment_get_the_same(
    ctx: context.Context, account: stored_accounts.Account, settings: config.Settings, clock: contexts.Clock
) -> None:
    domain = await domains.add(ctx, account.id, "example.com", verified=False)
    async with composition.open_context(settings, clock=clock) as elsewhere:
        records = await asyncio.gather(*(domain_keys.record(here, domain) for here in (ctx, elsewhere)))
    assert len(set(records)) == 1
    key = await stored_key(ctx, account.id, domain.id)
    assert key is not None
    assert key.selector == records[0].selector


async def test_forty_domains_of_one_account_keep_neither_threads_nor_keys_from_another(
    ctx: context.Context, account: stored_accounts.Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = await accounts.create(ctx, "Other")
    theirs = await domains.add(ctx, other.id, "other.example", verified=False)
    mine = [await domains.add(ctx, account.id, f"d{number}.example", verified=False) for number in range(40)]
    generate, may_go_on = domain_keys._generate, threading.Semaphore(0)

    def held() -> tuple[bytes, bytes]:
        may_go_on.acquire(timeout=60)
        return generate()

    monkeypatch.setattr(domain_keys, "_generate", held)
    records = [asyncio.create_task(domain_keys.record(ctx, domain)) for domain in mine]
    try:
        async with asyncio.timeout(60):
            other_work = await asyncio.gather(
                asyncio.to_thread(threading.current_thread), ctx.threads.run(other.id, threading.current_thread)
            )
            assert threading.main_thread() not in other_work
            its_record = asyncio.create_task(domain_keys.record(ctx, theirs))
            waiting = ctx.key_threads._turns._waiting
            while not all(waiting.is_waiting((fair_shares.Party(one.id),)) for one in (account, other)):
                await asyncio.sleep(0.01)
            may_go_on.release(3)  # for the one in progress, one more, and its own
            await its_record
    finally:
        may_go_on.release(40)
    await asyncio.gather(*records)


@pytest.mark.usefixtures("real_keys")
async def test_accounts_that_claim_one_name_have_keys_of_their_own(
    ctx: context.Context, account: stored_accounts.Account
) -> None:
    other = await accounts.create(ctx, "Other")
    for one in (account, other):
        await domains.add(ctx, one.id, "example.com", verified=False)
    mine = await domain_keys.signing_key(ctx, account.id, "example.com")
    theirs = await domain_keys.signing_key(ctx, other.id, "example.com")
    assert mine is not None
    assert theirs is not None
    assert mine.selector != theirs.selector
    assert mine.private_key != theirs.private_key


@pytest.mark.usefixtures("real_keys")
async def test_a_removed_domain_has_no_key_and_a_new_one_gets_another(
    ctx: context.Context, account: stored_accounts.Account
) -> None:
    domain = await domains.add(ctx, account.id, "example.com", verified=False)
    before = await domain_keys.record(ctx, domain)
    await domains.remove(ctx, account.id, domain.id)
    assert await stored_key(ctx, account.id, domain.id) is None
    assert await domain_keys.signing_key(ctx, account.id, "example.com") is None
    with pytest.raises(errors.NotFound):
        await domain_keys.record(ctx, domain)
    assert await stored_key(ctx, account.id, domain.id) is None
    again = await domains.add(ctx, account.id, "example.com", verified=False)
    assert (await domain_keys.record(ctx, again)).selector != before.selector


async def test_the_private_key_is_stored_so_that_only_this_installation_reads_it(
    ctx: context.Context, account: stored_accounts.Account
) -> None:
    domain = await domains.add(ctx, account.id, "example.com", verified=False)
    key = await domain_keys.signing_key(ctx, account.id, "example.com")
    stored = await stored_key(ctx, account.id, domain.id)
    assert key is not None
    assert stored is not None
    assert key.private_key[:64] not in stored.private_key
    assert repr(key.private_key)[2:20] not in repr(key)
    stranger = dataclasses.replace(ctx, keys=dataclasses.replace(ctx.keys, encryption=bytes(32)))
    with pytest.raises(encryption.DecryptionError):
        await domain_keys.signing_key(stranger, account.id, "example.com")


async def test_a_key_that_is_moved_to_another_domain_does_not_open(
    ctx: context.Context, account: stored_accounts.Account
) -> None:
    mine = await domains.add(ctx, account.id, "example.com", verified=False)
    await domain_keys.record(ctx, mine)
    stored = await stored_key(ctx, account.id, mine.id)
    other = await domains.add(ctx, account.id, "example.org", verified=False)
    assert stored is not None
    async with ctx.store.transaction() as tx:
        await dkim_keys.insert_dkim_keys(tx, dataclasses.replace(stored, domain_id=other.id))
    with pytest.raises(encryption.DecryptionError):
        await domain_keys.signing_key(ctx, account.id, "example.org")


async def test_an_unknown_domain_and_one_of_another_account_have_no_key(
    ctx: context.Context, account: stored_accounts.Account
) -> None:
    other = await accounts.create(ctx, "Other")
    await domains.add(ctx, other.id, "example.com", verified=True)
    assert await domain_keys.signing_key(ctx, account.id, "example.com") is None
    assert await domain_keys.signing_key(ctx, account.id, "example.org") is None
    assert await domain_keys.existing_records(ctx, []) == {}
