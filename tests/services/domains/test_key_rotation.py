"""A new key signs when DNS has its record; the old one stays published until its mail has arrived."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from postroad import config, context, errors
from postroad.mail.signing import domain_keys, signer_pool
from postroad.model.domains.domain_records import RecordPurpose, RecordState
from postroad.services import audit_log
from postroad.services.domains import dns_checks as domain_checks
from postroad.services.domains import domain_registry as domains
from postroad.services.domains import key_rotation
from postroad.storage.mail import domains as dkim_keys
from tests import contexts, dkim_verifiers, dns_server
from tests.services import domain_zones

CONTENT = b"From: shop@example.com\r\nTo: ada@example.net\r\nSubject: Your order\r\n\r\nIt is on its way.\r\n"
DAY = 24 * 3600


@pytest.fixture
def settings(database_url: str, server: dns_server.DnsServer) -> config.Settings:
    return domain_zones.settings(database_url, server)


@pytest_asyncio.fixture
async def domain(ctx: context.Context, account_id: str, server: dns_server.DnsServer) -> dkim_keys.Domain:
    """A domain that DNS has verified."""
    made = await domains.add(ctx, account_id, domain_zones.DOMAIN, verified=False)
    await domain_zones.publish_all(ctx, server, made)
    return (await domain_checks.check(ctx, made)).domain


@pytest_asyncio.fixture
async def signer(ctx: context.Context) -> AsyncIterator[signer_pool.DkimSigner]:
    made = signer_pool.DkimSigner(ctx)
    yield made
    await made.close()


async def check(ctx: context.Context, domain: dkim_keys.Domain) -> dict[str, RecordState]:
    checked = await domain_checks.check(ctx, domain)
    return {one.record.purpose: one.state for one in await domain_checks.records(ctx, checked.domain)}


async def selectors(ctx: context.Context, domain: dkim_keys.Domain) -> dict[str, str]:
    return {record.purpose: record.selector for record in await domain_keys.records(ctx, domain)}


async def signing_selector(ctx: context.Context, domain: dkim_keys.Domain) -> str:
    key = await domain_keys.signing_key(ctx, domain.account_id, domain.name)
    assert key is not None
    return key.selector


async def stored_keys(ctx: context.Context, domain: dkim_keys.Domain) -> list[dkim_keys.DkimKey]:
    async with ctx.store.reading() as tx:
        return await dkim_keys.dkim_keys(tx, domain.account_id, domain.id)


async def actions(ctx: context.Context, domain: dkim_keys.Domain) -> list[tuple[str, str]]:
    entries = await audit_log.page(ctx, domain.account_id, before=None, limit=10)
    return [(entry.action, entry.detail) for entry in reversed(entries) if entry.action.startswith("domain.key_")]


async def test_the_old_key_signs_until_the_new_record_is_in_dns_and_is_deleted_after_the_overlap(
    ctx: context.Context, server: dns_server.DnsServer, domain: dkim_keys.Domain, clock: contexts.Clock
) -> None:
    old = await signing_selector(ctx, domain)
    await key_rotation.rotate(ctx, domain)
    new = (await selectors(ctx, domain))["dkim_next"]
    assert new != old
    found = await check(ctx, domain)
    assert (found["dkim"], found["dkim_next"]) == (RecordState.OK, RecordState.MISSING)
    assert await signing_selector(ctx, domain) == old

    await domain_zones.publish_keys(ctx, server, domain, RecordPurpose.DKIM_NEXT)
    found = await check(ctx, domain)
    assert (found["dkim"], found["dkim_old"]) == (RecordState.OK, RecordState.OK)
    assert "dkim_next" not in found
    assert await signing_selector(ctx, domain) == new
    assert (await selectors(ctx, domain))["dkim_old"] == old
    shown = {one.record.purpose: one for one in await domain_checks.records(ctx, domain)}
    assert shown[RecordPurpose.DKIM_OLD].detail == (
        "key found; mail signed with this key is in flight, so keep the record until 2027-01-22T08:00:00.000Z"
    )

    clock.pass_seconds(7 * DAY - 1)
    await check(ctx, domain)
    assert all(key.private_key for key in await stored_keys(ctx, domain))
    clock.pass_seconds(1)
    assert (await check(ctx, domain))["dkim_old"] is RecordState.OK
    (kept,) = [key for key in await stored_keys(ctx, domain) if key.status == "old"]
    assert (kept.selector, kept.private_key) == (old, b"")
    shown = {one.record.purpose: one for one in await domain_checks.records(ctx, domain)}
    assert shown[RecordPurpose.DKIM_OLD].detail == "this key no longer signs; remove the record"

    server.zones.pop(f"{old}._domainkey.{domain.name}")
    assert "dkim_old" not in await check(ctx, domain)
    assert {key.status for key in await stored_keys(ctx, domain)} == {"current"}
    assert sorted(await actions(ctx, domain)) == [
        ("domain.key_activated", f"selector {new}"),
        ("domain.key_created", f"selector {new}"),
        ("domain.key_deleted", f"selector {old}"),
    ]


async def test_a_failure_of_dns_changes_no_key(
    ctx: context.Context, server: dns_server.DnsServer, domain: dkim_keys.Domain
) -> None:
    await domain_zones.publish_keys(ctx, server, domain, RecordPurpose.DKIM_ED25519)
    await check(ctx, domain)
    await key_rotation.rotate(ctx, domain)
    before = await stored_keys(ctx, domain)
    server.zones["*"] = dns_server.Fault.SERVFAIL
    server.zones.update(dict.fromkeys(server.zones, dns_server.Fault.SERVFAIL))
    assert set((await check(ctx, domain)).values()) == {RecordState.UNKNOWN}
    assert await stored_keys(ctx, domain) == before


async def test_a_rotation_is_begun_once_on_all_hosts_and_not_during_the_overlap(
    ctx: context.Context,
    other_process: context.Context,
    server: dns_server.DnsServer,
    domain: dkim_keys.Domain,
    clock: contexts.Clock,
) -> None:
    old = await signing_selector(ctx, domain)
    await asyncio.gather(*(key_rotation.rotate(here, domain) for here in (ctx, other_process)))
    await key_rotation.rotate(ctx, domain)
    assert [key.status for key in await stored_keys(ctx, domain)].count("next") == 2
    assert [action for action, _ in await actions(ctx, domain)] == ["domain.key_created"]
    # The domain stays verified when the record is replaced at once.
    server.zones.pop(f"{old}._domainkey.{domain.name}")
    await domain_zones.publish_keys(ctx, server, domain, RecordPurpose.DKIM_NEXT)
    found = await check(ctx, domain)
    assert (found["dkim"], found["dkim_old"]) == (RecordState.OK, RecordState.MISSING)
    assert (await domains.find(ctx, domain.account_id, domain.id)).failing_since is None
    with pytest.raises(errors.Conflict, match=r"kept until 2027-01-22T08:00:00\.000Z"):
        await key_rotation.rotate(ctx, domain)
    clock.pass_seconds(7 * DAY)
    await check(ctx, domain)
    await key_rotation.rotate(ctx, domain)
    assert sorted({key.status for key in await stored_keys(ctx, domain)}) == ["current", "next"]


async def test_every_process_signs_with_the_new_key_within_a_second(
    ctx: context.Context,
    other_process: context.Context,
    server: dns_server.DnsServer,
    domain: dkim_keys.Domain,
    signer: signer_pool.DkimSigner,
    clock: contexts.Clock,
) -> None:
    before = await signer.signature(domain.account_id, domain.name, "em_1", CONTENT)
    await key_rotation.rotate(other_process, domain)
    await domain_zones.publish_keys(other_process, server, domain, RecordPurpose.DKIM_NEXT)
    new = (await selectors(other_process, domain))["dkim_next"]
    await check(other_process, domain)
    clock.pass_seconds(1)
    after = await signer.signature(domain.account_id, domain.name, "em_1", CONTENT)
    assert f" s={new};".encode() in after
    assert f" s={new};".encode() not in before


async def test_a_domain_that_waits_for_a_new_record_is_checked_soon_and_often(
    ctx: context.Context, domain: dkim_keys.Domain, clock: contexts.Clock
) -> None:
    assert domain.check_at > clock.now + 20 * 3600 * contexts.SECOND
    await key_rotation.rotate(ctx, domain)
    assert (await domains.find(ctx, domain.account_id, domain.id)).check_at == clock.now
    await check(ctx, domain)
    due = (await domains.find(ctx, domain.account_id, domain.id)).check_at
    assert due < clock.now + 6 * 60 * contexts.SECOND


async def test_mail_gets_a_second_signature_while_the_ed25519_record_is_published(
    ctx: context.Context,
    server: dns_server.DnsServer,
    domain: dkim_keys.Domain,
    signer: signer_pool.DkimSigner,
    clock: contexts.Clock,
) -> None:
    assert (await signer.signature(domain.account_id, domain.name, "em_1", CONTENT)).count(b"DKIM-Signature:") == 1
    name = await domain_zones.publish_keys(ctx, server, domain, RecordPurpose.DKIM_ED25519)
    assert (await check(ctx, domain))["dkim_ed25519"] is RecordState.OK
    both = await signer.signature(domain.account_id, domain.name, "em_2", CONTENT)
    first, second = both.split(b"DKIM-Signature:")[1:]
    assert (b"a=rsa-sha256" in first, b"a=ed25519-sha256" in second) == (True, True)
    assert f" s={name.partition('.')[0]};".encode() in second
    assert first.partition(b" bh=")[2].partition(b";")[0] == second.partition(b" bh=")[2].partition(b";")[0]

    server.zones.pop(name)
    assert (await check(ctx, domain))["dkim_ed25519"] is RecordState.MISSING
    clock.pass_seconds(1)
    assert (await signer.signature(domain.account_id, domain.name, "em_3", CONTENT)).count(b"DKIM-Signature:") == 1


@dkim_verifiers.needs_opendkim
async def test_opendkim_accepts_both_signatures_before_and_after_a_rotation(
    ctx: context.Context,
    server: dns_server.DnsServer,
    domain: dkim_keys.Domain,
    signer: signer_pool.DkimSigner,
    clock: contexts.Clock,
    tmp_path: Path,
) -> None:
    clock.now = 1_700_000_000 * contexts.SECOND  # verifiers refuse signatures from the future
    ed25519, ed25519_next = RecordPurpose.DKIM_ED25519, RecordPurpose.DKIM_ED25519_NEXT
    await domain_zones.publish_keys(ctx, server, domain, ed25519)
    await check(ctx, domain)
    before = await signer.signature(domain.account_id, domain.name, "em_1", CONTENT)
    await key_rotation.rotate(ctx, domain)
    await domain_zones.publish_keys(ctx, server, domain, RecordPurpose.DKIM_NEXT, ed25519_next)
    await check(ctx, domain)
    clock.pass_seconds(1)
    after = await signer.signature(domain.account_id, domain.name, "em_1", CONTENT)
    records = {record.name: record.value or "" for record in await domain_keys.records(ctx, domain)}
    assert len(records) == 4
    for fields in (before, after):
        for number in (0, 1):
            alone = b"DKIM-Signature:" + fields.split(b"DKIM-Signature:")[1:][number]
            assert dkim_verifiers.opendkim_accepts(alone + CONTENT, records, tmp_path)


async def test_the_keys_of_a_removed_domain_are_gone_during_a_rotation_too(
    ctx: context.Context, domain: dkim_keys.Domain
) -> None:
    await key_rotation.rotate(ctx, domain)
    await domains.remove(ctx, domain.account_id, domain.id)
    assert await stored_keys(ctx, domain) == []
    with pytest.raises(errors.NotFound):
        await key_rotation.rotate(ctx, domain)
