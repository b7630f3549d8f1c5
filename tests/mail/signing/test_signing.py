"""Mail is signed once a message, so that foreign verifiers accept it, as long as its domain is there."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import pytest_asyncio

from postroad import config, context, errors
from postroad.mail.signing import domain_keys, signer_pool, signer_worker
from postroad.protocol.signatures import dkim
from postroad.roles import composition
from postroad.services.domains import domain_registry as domains
from postroad.storage.mail import messages
from postroad.storage.people import accounts as stored_accounts
from tests import accepted_mail, contexts, dkim_verifiers
from tests.services import rsa_keys

CONTENT = b"From: shop@example.com\r\nTo: ada@example.net\r\nSubject: Your order\r\n\r\nIt is  on its way.\r\n"
LARGE = CONTENT + b"many  words \r\n" * ((128 * 1024) // 10)


# What `counting` puts its own in place of.
PROCESS_SIGNERS = signer_pool.SignerPool


class CountingSigners:
    """Real signers that count, and wait until they may begin."""

    def __init__(self) -> None:
        self.signed: list[str] = []
        self.may_begin = asyncio.Event()
        self.may_begin.set()
        self._processes = PROCESS_SIGNERS(1)

    async def sign(self, key: domain_keys.SigningKey, digest: bytes) -> bytes:
        self.signed.append(key.selector)
        await self.may_begin.wait()
        return await self._processes.sign(key, digest)

    async def close(self) -> None:
        await self._processes.close()


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> Callable[[], CountingSigners]:
    """The signers that `DkimSigner` gets, made when the event loop runs."""
    made: list[CountingSigners] = []

    def make(*_: object, **__: object) -> CountingSigners:
        made.append(CountingSigners())
        return made[0]

    monkeypatch.setattr(signer_pool, "SignerPool", make)
    return lambda: made[0]


@pytest_asyncio.fixture
async def signer(
    ctx: context.Context, counting: Callable[[], CountingSigners]
) -> AsyncIterator[signer_pool.DkimSigner]:
    made = signer_pool.DkimSigner(ctx)
    yield made
    await made.close()


async def records_of(ctx: context.Context, account_id: str) -> dict[str, str]:
    listed = await domains.of_account(ctx, account_id)
    return {record.name: record.value for record in (await domain_keys.existing_records(ctx, listed)).values()}


async def test_dkimpy_accepts_what_is_signed_and_nothing_that_was_changed(
    ctx: context.Context, account: stored_accounts.Account, clock: contexts.Clock
) -> None:
    clock.now = 1_700_000_000 * contexts.SECOND  # verifiers refuse signatures from the future
    await accepted_mail.allow_sending(ctx, account.id)
    message_id = await accepted_mail.accept(ctx, account.id, subject="Grüße  aus  Köln", text="Eins \n\n zwei\n\n")
    async with ctx.store.reading() as tx:
        content = await messages.body(tx, account.id, message_id)
    assert content is not None
    made = signer_pool.DkimSigner(ctx)
    field = await made.signature(account.id, "example.com", message_id, content)
    large = await made.signature(account.id, "example.com", "em_large", LARGE)
    await made.close()
    records = await records_of(ctx, account.id)
    for message in (field + content, large + LARGE):
        assert dkim_verifiers.dkimpy_accepts(message, records)
        assert not dkim_verifiers.dkimpy_accepts(message.replace(b"To:", b"To: eve@example.net,"), records)


@dkim_verifiers.needs_opendkim
async def test_opendkim_accepts_what_is_signed_and_nothing_that_was_changed(
    ctx: context.Context, account: stored_accounts.Account, clock: contexts.Clock, tmp_path: Path
) -> None:
    clock.now = 1_700_000_000 * contexts.SECOND
    await accepted_mail.allow_sending(ctx, account.id)
    made = signer_pool.DkimSigner(ctx)
    message = await made.signature(account.id, "example.com", "em_1", CONTENT) + CONTENT
    large = await made.signature(account.id, "example.com", "em_2", LARGE) + LARGE
    await made.close()
    records = await records_of(ctx, account.id)
    assert dkim_verifiers.opendkim_accepts(message, records, tmp_path)
    assert dkim_verifiers.opendkim_accepts(large, records, tmp_path)
    assert dkim_verifiers.opendkim_accepts(b"Received: from a by b\r\n" + message, records, tmp_path)
    assert not dkim_verifiers.opendkim_accepts(message.replace(b"order", b"debts"), records, tmp_path)
    assert not dkim_verifiers.opendkim_accepts(b"Subject: Another\r\n" + message, records, tmp_path)
    assert not dkim_verifiers.opendkim_accepts(message + b"PS: or not\r\n", records, tmp_path)


async def test_a_message_is_signed_once_for_all_who_ask(
    ctx: context.Context,
    sender: str,
    signer: signer_pool.DkimSigner,
    counting: Callable[[], CountingSigners],
    clock: contexts.Clock,
) -> None:
    counting().may_begin.clear()
    asking = [asyncio.create_task(signer.signature(sender, "example.com", "em_1", CONTENT)) for _ in range(10)]
    while not counting().signed:
        await asyncio.sleep(0.001)
    counting().may_begin.set()
    fields = set(await asyncio.gather(*asking))
    clock.pass_seconds(3600)
    fields.add(await signer.signature(sender, "example.com", "em_1", CONTENT))
    assert len(fields) == len(counting().signed) == 1
    other = await signer.signature(sender, "example.com", "em_2", CONTENT)
    assert other not in fields
    assert len(counting().signed) == 2


async def test_those_who_need_the_first_key_at_one_moment_wait_for_the_same(
    ctx: context.Context,
    sender: str,
    signer: signer_pool.DkimSigner,
    counting: Callable[[], CountingSigners],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[int] = []
    generate = domain_keys._generate

    def counted() -> tuple[bytes, bytes]:
        made.append(1)
        return generate()

    monkeypatch.setattr(domain_keys, "_generate", counted)
    await asyncio.gather(*(signer.signature(sender, "example.com", f"em_{number}", CONTENT) for number in range(10)))
    assert len(made) == 1
    assert len(counting().signed) == 10
    assert len(set(counting().signed)) == 1


async def test_a_removed_domain_signs_nothing_and_a_new_one_signs_anew(
    ctx: context.Context,
    account: stored_accounts.Account,
    signer: signer_pool.DkimSigner,
    settings: config.Settings,
    clock: contexts.Clock,
) -> None:
    domain = await domains.add(ctx, account.id, "example.com", verified=True)
    before = await signer.signature(account.id, "example.com", "em_1", CONTENT)
    assert before
    async with composition.open_context(settings, clock=clock) as elsewhere:
        await domains.remove(elsewhere, account.id, domain.id)
    clock.pass_seconds(1)
    assert await signer.signature(account.id, "example.com", "em_1", CONTENT) == b""
    await domains.add(ctx, account.id, "example.com", verified=True)
    after = await signer.signature(account.id, "example.com", "em_1", CONTENT)
    assert after
    assert after != before


async def test_a_look_up_from_before_a_removal_is_not_believed_after_it(
    ctx: context.Context,
    account: stored_accounts.Account,
    signer: signer_pool.DkimSigner,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    domain = await domains.add(ctx, account.id, "example.com", verified=True)
    key = await domain_keys.signing_key(ctx, account.id, "example.com")
    looked, may_end = asyncio.Event(), asyncio.Event()
    look_up = domain_keys.signing_key

    async def slowly(*_: object) -> domain_keys.SigningKey | None:
        looked.set()
        await may_end.wait()
        return key

    monkeypatch.setattr(domain_keys, "signing_key", slowly)
    early = asyncio.create_task(signer.signature(account.id, "example.com", "em_1", CONTENT))
    await looked.wait()
    await domains.remove(ctx, account.id, domain.id)
    monkeypatch.setattr(domain_keys, "signing_key", look_up)
    assert await signer.signature(account.id, "example.com", "em_2", CONTENT) == b""
    may_end.set()
    assert await early
    assert await signer.signature(account.id, "example.com", "em_3", CONTENT) == b""


async def test_the_signature_carries_domain_key_and_time(
    ctx: context.Context, account: stored_accounts.Account, signer: signer_pool.DkimSigner, clock: contexts.Clock
) -> None:
    domain = await domains.add(ctx, account.id, "example.com", verified=True)
    record = await domain_keys.record(ctx, domain)
    field = await signer.signature(account.id, "example.com", "em_1", CONTENT)
    expected = dkim.prepare(
        dkim.cover(CONTENT), domain="example.com", selector=record.selector, signed_at=clock.now // contexts.SECOND
    )
    assert field.startswith(expected.field)
    key = await domain_keys.signing_key(ctx, account.id, "example.com")
    assert key is not None
    assert field == dkim.finish(expected, signer_worker.load(key.private_key)(expected.digest))


async def test_old_signatures_make_room_for_new_ones(
    ctx: context.Context,
    account: stored_accounts.Account,
    counting: Callable[[], CountingSigners],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(signer_pool, "MAX_SIGNATURES", 2)
    await accepted_mail.allow_sending(ctx, account.id)
    made = signer_pool.DkimSigner(ctx)
    for message_id in ("em_1", "em_2", "em_3", "em_3", "em_1"):
        await made.signature(account.id, "example.com", message_id, CONTENT)
    await made.close()
    assert len(counting().signed) == 4


async def test_closing_finishes_what_is_under_way_and_refuses_more(
    ctx: context.Context, sender: str, counting: Callable[[], CountingSigners]
) -> None:
    made = signer_pool.DkimSigner(ctx)
    counting().may_begin.clear()
    asking = asyncio.create_task(made.signature(sender, "example.com", "em_1", CONTENT))
    while not counting().signed:
        await asyncio.sleep(0.001)
    closing = asyncio.create_task(made.close())
    await asyncio.sleep(0)
    counting().may_begin.set()
    await closing
    assert await asking
    with pytest.raises(errors.ServiceUnavailable):
        await made.signature(sender, "example.com", "em_2", CONTENT)


async def test_a_failed_signature_is_reported_and_tried_again_the_next_time(
    ctx: context.Context,
    sender: str,
    signer: signer_pool.DkimSigner,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    usable = domain_keys.signing_key
    broken = domain_keys.SigningKey("broken", rsa_keys.UNUSABLE.private_key)

    async def unusable(*_: object) -> domain_keys.SigningKey:
        return broken

    monkeypatch.setattr(domain_keys, "signing_key", unusable)
    with pytest.raises(signer_pool.SigningFailed, match="broken"):
        await signer.signature(sender, "example.com", "em_1", CONTENT)
    monkeypatch.setattr(domain_keys, "signing_key", usable)
    ctx.access_cache.invalidate()
    assert await signer.signature(sender, "example.com", "em_1", CONTENT)
