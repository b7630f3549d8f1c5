"""`postroad domain`: the domains that an account may send from."""

import click

from postroad import errors
from postroad.cli import command, naming, output, views
from postroad.model import times
from postroad.protocol import address
from postroad.services import context as services_context
from postroad.services import domains as services_domains
from postroad.storage import domains


@click.command("add", cls=command.StoreCommand)
@click.argument("name", metavar="DOMAIN")
@naming.account_option
@click.option("--verified", is_flag=True, help="Count it as proven, without asking DNS.")
async def add(context: services_context.Context, *, name: str, account: str | None, verified: bool) -> output.Report:
    """Register a domain that an account may send from."""
    found = await naming.account(context, account)
    return _report(await services_domains.add(context, found.id, name, verified=verified), "is registered")


@click.command("list", cls=command.StoreCommand)
@naming.account_option
async def show_list(context: services_context.Context, account: str | None) -> output.Report:
    """List an account's domains."""
    found = await naming.account(context, account)
    listed = await services_domains.of_account(context, found.id)
    rows = [(one.id, one.name, times.optional_to_wire(one.verified_at)) for one in listed]
    text = output.table(["id", "domain", "verified"], rows, empty="There are no domains.")
    return output.Report(data={"domains": [views.domain(one) for one in listed]}, text=text)


@click.command("verify", cls=command.StoreCommand)
@click.argument("name", metavar="DOMAIN")
@naming.account_option
async def verify(context: services_context.Context, name: str, account: str | None) -> output.Report:
    """Count a registered domain as proven, without asking DNS."""
    domain = await _find(context, name, account)
    return _report(await services_domains.verify(context, domain.account_id, domain.id), "is registered")


async def _find(context: services_context.Context, name: str, account: str | None) -> domains.Domain:
    found = await naming.account(context, account)
    try:
        normal = address.parse_domain(name)
    except address.AddressError as problem:
        raise errors.InvalidRequest(f"{name}: {problem}") from None
    async with context.store.reading() as tx:
        domain = await domains.by_name(tx, found.id, normal)
    if domain is None:
        raise errors.NotFound(f"account {found.name!r} has no domain {normal}")
    return domain


def _report(domain: domains.Domain, what: str) -> output.Report:
    state = "verified" if domain.verified_at else "not verified yet"
    return output.Report(data={"domain": views.domain(domain)}, text=f"{domain.name} {what}, {state}: {domain.id}")


GROUP = click.Group("domain", commands=[add, show_list, verify], help="Domains that accounts send from.")
