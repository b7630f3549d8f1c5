"""Routes: what they match, whose domain it is, where they may forward to, and whether DNS brings their mail."""

import pytest

from postroad import config, context, errors
from postroad.model.domains import domain_records
from postroad.model.people import callers
from postroad.protocol.mime import address
from postroad.services import audit_log
from postroad.services.accounts import account_registry
from postroad.services.domains import domain_registry as domains
from postroad.services.inbound import routes
from postroad.services.people import users
from postroad.storage.mail import received
from tests import contexts, dns_server
from tests.services import domain_zones


@pytest.fixture
def settings(database_url: str, server: dns_server.DnsServer) -> config.Settings:
    return domain_zones.settings(database_url, server)


@pytest.mark.parametrize(
    "given, key",
    [
        ("Support@IN.Example.com", "support@in.example.com"),
        (" support+*@in.example.com ", "support+*@in.example.com"),
        ("support+billing@in.example.com", "support+billing@in.example.com"),
        ("*@in.bücher.example", "*@in.xn--bcher-kva.example"),
        ("Grüße@example.com", "grüße@example.com"),
    ],
)
def test_a_match_is_compared_as_addresses_are(given: str, key: str) -> None:
    assert routes.match_key(given) == key


@pytest.mark.parametrize(
    "given",
    [
        "",
        "*",
        "@example.com",
        "example.com",
        "*@example",
        "s*@example.com",
        "*+*@example.com",
        "a+b+*@example.com",
        "+*@example.com",
        "Ada <ada@example.com>",
        "a@b@example.com",
        "support@*.example.com",
        f"{'a' * 64}+*@example.com",
        "support+*@",
        "a\0@example.com",
    ],
)
def test_what_is_no_match_is_refused(given: str) -> None:
    with pytest.raises(errors.InvalidRequest, match="match"):
        routes.match_key(given)


@pytest.mark.parametrize(
    "to, keys",
    [
        ("Support@in.example.com", ["support@in.example.com", "support+*@in.example.com", "*@in.example.com"]),
        ("a+b+c@in.example.com", ["a+b+c@in.example.com", "a+*@in.example.com", "*@in.example.com"]),
    ],
)
def test_the_most_specific_route_comes_first(to: str, keys: list[str]) -> None:
    assert routes.keys_of(address.parse(to)) == keys


async def test_a_route_belongs_to_the_nearest_verified_domain(ctx: context.Context, account_id: str) -> None:
    other = (await account_registry.create(ctx, "Other")).id
    await domains.add(ctx, account_id, "example.com", verified=True)
    await domains.add(ctx, account_id, "waiting.example", verified=False)
    await domains.add(ctx, other, "theirs.example.com", verified=True)
    for match in ("a@example.com", "a@in.example.com", "*@deep.in.example.com"):
        assert (await routes.add(ctx, account_id, match)).match_key == match
    for match in ("a@example.org", "a@notexample.com", "*@com.example", "a@waiting.example", "a@theirs.example.com"):
        with pytest.raises(errors.Forbidden, match="neither a verified domain"):
            await routes.add(ctx, account_id, match)
    assert (await routes.add(ctx, other, "a@x.theirs.example.com")).action == "store"
    with pytest.raises(errors.Conflict, match="already"):
        await routes.add(ctx, account_id, "A@example.com", action="drop")


async def test_who_verifies_a_nearer_domain_takes_over_its_addresses(ctx: context.Context, account_id: str) -> None:
    other = (await account_registry.create(ctx, "Other")).id

    async def taken_by(to: str) -> str | None:
        async with ctx.store.reading() as tx:
            match = await received.matching(tx, routes.keys_of(address.parse(to)))
            return None if match is None else match.route.account_id

    await domains.add(ctx, account_id, "example.com", verified=True)
    for match in ("a@theirs.example.com", "*@theirs.example.com", "a@x.theirs.example.com", "*@mine.example.com"):
        await routes.add(ctx, account_id, match)
    assert await taken_by("a@theirs.example.com") == account_id
    await domains.add(ctx, other, "theirs.example.com", verified=True)
    for to in ("a@theirs.example.com", "b@theirs.example.com", "a@x.theirs.example.com"):
        assert await taken_by(to) is None
    # The less specific one of its owner, and the place of one that lapsed.
    assert (await routes.add(ctx, other, "*@theirs.example.com")).action == "store"
    assert await taken_by("a@theirs.example.com") == other
    assert await taken_by("a@mine.example.com") == account_id
    # Where the nearest domain is the account's own, another one between changes nothing.
    await domains.add(ctx, account_id, "x.theirs.example.com", verified=True)
    assert await taken_by("a@x.theirs.example.com") == account_id


async def test_a_route_is_found_and_removed_by_its_account_alone(ctx: context.Context, account_id: str) -> None:
    other = (await account_registry.create(ctx, "Other")).id
    await domains.add(ctx, account_id, "example.com", verified=True)
    route = await routes.add(ctx, account_id, "*@example.com", action="drop")
    assert await routes.find(ctx, account_id, route.id) == route
    assert await routes.of_account(ctx, other, limit=9) == []
    for action in (routes.find, routes.remove, routes.check):
        with pytest.raises(errors.NotFound):
            await action(ctx, other, route.id)
        with pytest.raises(errors.NotFound):
            await action(ctx, account_id, "rt_x")
    await routes.remove(ctx, account_id, route.id)
    assert await routes.of_account(ctx, account_id, limit=9) == []
    entries = await audit_log.page(ctx, account_id, before=None, limit=9)
    actions = {entry.action for entry in entries if entry.action.startswith("inbound_route")}
    assert actions == {"inbound_route.added", "inbound_route.removed"}


async def test_a_route_forwards_to_the_account_itself_and_never_to_a_stranger(
    ctx: context.Context, account_id: str
) -> None:
    await domains.add(ctx, account_id, "example.com", verified=True)
    await users.create(
        ctx, account_id, email="Owner@elsewhere.example", password=contexts.PASSWORD, role=callers.Role.OWNER
    )
    await users.invite(ctx, account_id, email="guest@elsewhere.example", role=callers.Role.DEVELOPER)
    for number, own in enumerate(("help@example.com", "owner@elsewhere.example")):
        route = await routes.add(ctx, account_id, f"a{number}@in.example.com", forward_to=own)
        assert (route.action, route.forward_to) == ("forward", own)
    for stranger in ("eve@example.net", "guest@elsewhere.example", "a@sub.example.com", "nobody"):
        with pytest.raises(errors.InvalidRequest, match="forward_to"):
            await routes.add(ctx, account_id, "b@in.example.com", forward_to=stranger)
    with pytest.raises(errors.InvalidRequest, match="forward_to"):
        await routes.add(ctx, account_id, "b@in.example.com", action="forward")
    with pytest.raises(errors.InvalidRequest, match="forward_to"):
        await routes.add(ctx, account_id, "b@in.example.com", action="store", forward_to="help@example.com")


async def test_dns_says_whether_the_mail_of_a_route_arrives_here(
    ctx: context.Context, account_id: str, server: dns_server.DnsServer
) -> None:
    await domains.add(ctx, account_id, "example.com", verified=True)
    route = await routes.add(ctx, account_id, "*@in.example.com")
    host = (await ctx.dns.service()).host
    missing = await routes.check(ctx, account_id, route.id)
    assert (missing.name, missing.value, missing.state) == ("in.example.com", f"10 {host}", "missing")
    server.zones["in.example.com"] = {"MX": ["10 mx.elsewhere.example."]}
    assert (await routes.check(ctx, account_id, route.id)).state is domain_records.RecordState.WRONG
    server.zones["in.example.com"] = {"MX": [f"10 {host}."]}
    server.zones[host] = {"A": ["192.0.2.1"]}
    found = await routes.check(ctx, account_id, route.id)
    assert (found.state, found.detail) == (domain_records.RecordState.OK, "mail arrives here")
