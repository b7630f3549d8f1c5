"""With a zone of the operator, customers add aliases once, and keys are rotated by their age."""

import msgspec
import pytest
import pytest_asyncio

from postroad import config, context, errors
from postroad.mail.signing import domain_keys
from postroad.model.domains.domain_records import RecordPurpose, RecordState
from postroad.services.domains import dns_checks as domain_checks
from postroad.services.domains import domain_registry as domains
from postroad.services.domains import key_rotation
from postroad.storage.mail import domains as dkim_keys
from tests import contexts, dns_server
from tests.api import app_server
from tests.services import domain_zones

DAY = 24 * 3600


@pytest.fixture
def settings(database_url: str, server: dns_server.DnsServer) -> config.Settings:
    given = domain_zones.settings(database_url, server)
    return msgspec.structs.replace(
        given, domains=msgspec.structs.replace(given.domains, key_zone="dkim.example.net", key_rotation_days=180)
    )


@pytest_asyncio.fixture
async def domain(ctx: context.Context, account_id: str) -> dkim_keys.Domain:
    return await domains.add(ctx, account_id, domain_zones.DOMAIN, verified=False)


async def add_aliases(ctx: context.Context, server: dns_server.DnsServer, domain: dkim_keys.Domain) -> None:
    """What the customer does, once."""
    for record in await domain_keys.records(ctx, domain):
        assert record.type == "CNAME"
        server.zones[record.name] = {"CNAME": [f"{record.value}."]}


async def publish(ctx: context.Context, server: dns_server.DnsServer) -> None:
    """What the operator does, whenever keys have changed."""
    for name in [name for name in server.zones if name.endswith(".dkim.example.net")]:
        del server.zones[name]
    for record in await key_rotation.zone_records(ctx):
        half = len(record.value) // 2
        server.zones[record.name] = {"TXT": [f'"{record.value[:half]}" "{record.value[half:]}"']}


async def shown(ctx: context.Context, domain: dkim_keys.Domain) -> dict[str, domain_checks.RecordStatus]:
    return {status.record.purpose: status for status in await domain_checks.records(ctx, domain)}


async def check(ctx: context.Context, domain: dkim_keys.Domain) -> dict[str, domain_checks.RecordStatus]:
    return await shown(ctx, (await domain_checks.check(ctx, domain)).domain)


async def statuses(ctx: context.Context, domain: dkim_keys.Domain) -> dict[str, str]:
    async with ctx.store.reading() as tx:
        found = await dkim_keys.dkim_keys(tx, domain.account_id, domain.id)
    return {key.selector: key.status for key in found}


async def test_a_domain_has_two_aliases_for_each_algorithm_which_lead_to_the_keys(
    ctx: context.Context, server: dns_server.DnsServer, domain: dkim_keys.Domain
) -> None:
    records = {record.purpose: record for record in await domain_keys.records(ctx, domain)}
    selector = records[RecordPurpose.DKIM].selector
    below = f"{domain.id.removeprefix('dom_')}.dkim.example.net"
    assert {purpose: (record.name, record.type, record.value) for purpose, record in records.items()} == {
        "dkim": (f"{selector}._domainkey.example.com", "CNAME", f"{selector}.{below}"),
        "dkim_next": (f"{selector}b._domainkey.example.com", "CNAME", f"{selector}b.{below}"),
        "dkim_ed25519": (f"pe{selector[2:]}._domainkey.example.com", "CNAME", f"pe{selector[2:]}.{below}"),
        "dkim_ed25519_next": (f"pe{selector[2:]}b._domainkey.example.com", "CNAME", f"pe{selector[2:]}b.{below}"),
    }
    assert (await check(ctx, domain))["dkim"].state is RecordState.MISSING
    await add_aliases(ctx, server, domain)
    found = await check(ctx, domain)
    assert found["dkim"].detail == "alias found, but the operator has not published the key yet; nothing to do"
    assert found["dkim_next"].state is RecordState.OK
    await publish(ctx, server)
    found = await check(ctx, domain)
    assert {found[purpose].state for purpose in records} == {RecordState.OK}
    assert (await domains.find(ctx, domain.account_id, domain.id)).verified_by == dkim_keys.DNS
    server.zones[records[RecordPurpose.DKIM_NEXT].name] = {"CNAME": ["elsewhere.example.org."]}
    found = await check(ctx, domain)
    assert (found["dkim_next"].state, found["dkim_next"].detail) == (
        RecordState.WRONG,
        "found a CNAME to elsewhere.example.org; replace it with the value shown",
    )


async def test_keys_are_rotated_by_age_without_a_change_of_the_customers_dns(
    ctx: context.Context, server: dns_server.DnsServer, domain: dkim_keys.Domain, clock: contexts.Clock
) -> None:
    log = app_server.CapturedLog().logger()
    await add_aliases(ctx, server, domain)
    await publish(ctx, server)
    await domain_checks.check_due(ctx, log=log)
    (first, *_) = [one for one in await statuses(ctx, domain) if one.startswith("pr")]
    aliases = {
        name: dict(types) for name, types in server.zones.items() if isinstance(types, dict) and "CNAME" in types
    }

    clock.pass_seconds(179 * DAY)
    await domain_checks.check_due(ctx, log=log)
    assert set((await statuses(ctx, domain)).values()) == {"current"}
    for selector, old in ((f"{first}b", first), (first, f"{first}b")):  # and back
        clock.pass_seconds(2 * DAY)
        await domain_checks.check_due(ctx, log=log)
        assert (await statuses(ctx, domain))[selector] == "next"
        await publish(ctx, server)
        clock.pass_seconds(6 * 60)
        await domain_checks.check_due(ctx, log=log)
        found = await statuses(ctx, domain)
        assert (found[selector], found[old]) == ("current", "old")
        assert any(record.selector == old for record in await key_rotation.zone_records(ctx))
        clock.pass_seconds(8 * DAY)
        await domain_checks.check_due(ctx, log=log)
        assert not any(record.selector == old for record in await key_rotation.zone_records(ctx))
        await publish(ctx, server)
        clock.pass_seconds(171 * DAY)
        await domain_checks.check_due(ctx, log=log)
    assert {name: server.zones[name] for name in aliases} == aliases
    assert (await domains.find(ctx, domain.account_id, domain.id)).failing_since is None


async def test_the_alias_of_the_old_key_is_shown_as_such_until_its_mail_has_arrived(
    ctx: context.Context, server: dns_server.DnsServer, domain: dkim_keys.Domain, clock: contexts.Clock
) -> None:
    await add_aliases(ctx, server, domain)
    await key_rotation.rotate(ctx, domain)
    await publish(ctx, server)
    found = await check(ctx, domain)
    assert "dkim_next" not in found
    assert found["dkim_old"].state is RecordState.OK
    assert found["dkim_old"].detail == (
        "key found; mail signed with this key is in flight until 2027-01-22T08:00:00.000Z. "
        "Keep the record for the next key"
    )
    # The Ed25519 key has signed nothing, so its name is free; what was found there was a key, not an alias.
    assert found["dkim_ed25519_next"].state is RecordState.PENDING
    clock.pass_seconds(7 * DAY)
    found = await shown(ctx, domain)
    assert "dkim_old" not in found
    assert (found["dkim_next"].state, found["dkim_next"].detail) == (RecordState.PENDING, "not checked yet")
    assert (await check(ctx, domain))["dkim_next"].detail == "alias found"


async def test_all_domains_of_an_account_are_rotated_when_they_are_due_and_have_the_next_alias(
    ctx: context.Context, server: dns_server.DnsServer, domain: dkim_keys.Domain, clock: contexts.Clock
) -> None:
    made = [
        domain,
        *[await domains.add(ctx, domain.account_id, f"example.{top}", verified=False) for top in ("net", "org")],
    ]
    for one in made:
        await add_aliases(ctx, server, one)
    server.zones = {name: types for name, types in server.zones.items() if "b._domainkey.example.net" not in name}
    clock.pass_seconds(180 * DAY)
    log = app_server.CapturedLog()
    await domain_checks.check_due(ctx, log=log.logger())
    first, without, other = [sorted((await statuses(ctx, one)).values()) for one in made]
    assert first == other == ["current", "current", "next", "next"]
    assert without == ["current", "current"]
    assert (await shown(ctx, made[1]))["dkim_next"].state is RecordState.MISSING
    created = [line["domain"] for line in log.kept if line["event"] == "domain_key_created"]
    assert sorted(created) == ["example.com", "example.org"]


async def test_a_zone_has_the_keys_of_all_accounts_part_by_part(
    ctx: context.Context, domain: dkim_keys.Domain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_rotation, "PAGE_ROWS", 3)
    other = await domains.add(ctx, domain.account_id, "example.org", verified=False)
    for one in (domain, other):
        await domain_keys.records(ctx, one)
    await key_rotation.rotate(ctx, other)
    names = [record.name for record in await key_rotation.zone_records(ctx)]
    assert len(set(names)) == len(names) == 6


class TestWithoutAZone:
    @pytest.fixture
    def settings(self, database_url: str, server: dns_server.DnsServer) -> config.Settings:
        return domain_zones.settings(database_url, server)

    async def test_customers_publish_their_keys_and_nothing_is_rotated_by_age(
        self, ctx: context.Context, server: dns_server.DnsServer, domain: dkim_keys.Domain, clock: contexts.Clock
    ) -> None:
        with pytest.raises(errors.InvalidRequest, match="key_zone is not set"):
            await key_rotation.zone_records(ctx)
        await domain_zones.publish_all(ctx, server, domain)
        clock.pass_seconds(400 * DAY)
        await domain_checks.check_due(ctx, log=app_server.CapturedLog().logger())
        assert set((await statuses(ctx, domain)).values()) == {"current"}
