"""A domain has a host of its own for unsubscribe links when DNS shows that it leads here."""

import email
import re

import pytest

from postroad import config, context, errors
from postroad.model.mail import send_request
from postroad.services.accounts import account_registry as accounts
from postroad.services.domains import domain_registry as domains
from postroad.services.domains import link_hosts
from postroad.storage.mail import messages
from tests import accepted_mail, contexts, dns_server

NEWS = send_request.Unsubscribe("news")
HOST = "links.example.com"
# The names of the installation: of its pages, and of its mail.
PAGES = "app.example.net"
MAIL = "mail.example.net"


@pytest.fixture
def settings(database_url: str, server: dns_server.DnsServer) -> config.Settings:
    server.zones |= {PAGES: {"A": ["192.0.2.1"], "AAAA": ["2001:db8::1"]}, MAIL: {"A": ["192.0.2.2"]}}
    return contexts.load(
        database_url,
        http={"base_url": f"https://{PAGES}:8443"},
        delivery={"hostname": MAIL, "resolvers": [server.address]},
    )


async def domain_id(ctx: context.Context, account_id: str) -> str:
    return (await domains.by_name(ctx, account_id, "example.com")).id


async def link_of(ctx: context.Context, account_id: str) -> str:
    message_id = await accepted_mail.accept(ctx, account_id, unsubscribe=NEWS)
    async with ctx.store.reading() as tx:
        sent = email.message_from_bytes(await messages.body(tx, account_id, message_id) or b"")
    return str(sent["List-Unsubscribe"])


@pytest.mark.parametrize(
    "zone",
    [
        {"CNAME": [f"{PAGES}."]},
        {"CNAME": ["Mail.Example.NET."]},
        {"A": ["192.0.2.1"]},
        {"A": ["198.51.100.1", "192.0.2.2"]},
        {"AAAA": ["2001:db8::1"]},
    ],
    ids=str,
)
async def test_links_begin_with_a_host_that_leads_here_until_it_is_removed(
    ctx: context.Context, shop: str, server: dns_server.DnsServer, zone: dns_server.Types
) -> None:
    named = await domain_id(ctx, shop)
    assert (await link_of(ctx, shop)).startswith(f"<https://{PAGES}:8443/unsubscribe/")
    server.zones[HOST] = zone
    changed = await link_hosts.change(ctx, shop, named, "Links.Example.com")
    assert changed == await domains.find(ctx, shop, named)
    assert changed.link_host == HOST
    assert (await link_of(ctx, shop)).startswith("<https://links.example.com:8443/unsubscribe/")
    assert (await link_hosts.change(ctx, shop, named, None)).link_host is None
    assert (await link_of(ctx, shop)).startswith(f"<https://{PAGES}:8443/unsubscribe/")


@pytest.mark.parametrize("zone", [None, {}, {"CNAME": ["elsewhere.example."]}, {"A": ["198.51.100.1"]}], ids=str)
async def test_a_name_that_leads_elsewhere_is_refused_with_the_record_to_publish(
    ctx: context.Context, shop: str, server: dns_server.DnsServer, zone: dns_server.Types | None
) -> None:
    server.zones["elsewhere.example"] = {"A": ["198.51.100.1"]}
    if zone is not None:
        server.zones[HOST] = zone
    named = await domain_id(ctx, shop)
    said = (
        "link_host: links.example.com does not lead here; publish "
        "'links.example.com. CNAME app.example.net.' and try again"
    )
    with pytest.raises(errors.Conflict, match=f"^{re.escape(said)}$"):
        await link_hosts.change(ctx, shop, named, HOST)
    assert (await domains.find(ctx, shop, named)).link_host is None


async def test_the_domain_itself_can_be_the_host(ctx: context.Context, shop: str, server: dns_server.DnsServer) -> None:
    server.zones["example.com"] = {"A": ["192.0.2.1"]}
    assert (await link_hosts.change(ctx, shop, await domain_id(ctx, shop), "example.com")).link_host == "example.com"


@pytest.mark.parametrize("name", ["example.net", "notexample.com", "example.com.example.net", PAGES])
async def test_a_name_outside_the_domain_is_refused(ctx: context.Context, shop: str, name: str) -> None:
    with pytest.raises(errors.InvalidRequest, match=r"^link_host: must be example\.com or a name below it$"):
        await link_hosts.change(ctx, shop, await domain_id(ctx, shop), name)


async def test_while_dns_fails_nothing_is_changed(
    ctx: context.Context, shop: str, server: dns_server.DnsServer
) -> None:
    server.zones[HOST] = dns_server.Fault.SERVFAIL
    with pytest.raises(errors.Conflict, match=r"^link_host: DNS did not respond for links\.example\.com; try again$"):
        await link_hosts.change(ctx, shop, await domain_id(ctx, shop), HOST)


async def test_a_domain_of_another_account_is_not_found(
    ctx: context.Context, shop: str, server: dns_server.DnsServer
) -> None:
    other = (await accounts.create(ctx, "Other")).id
    server.zones[HOST] = {"CNAME": [f"{PAGES}."]}
    with pytest.raises(errors.NotFound):
        await link_hosts.change(ctx, other, await domain_id(ctx, shop), HOST)
    assert (await link_of(ctx, shop)).startswith(f"<https://{PAGES}:8443/")
