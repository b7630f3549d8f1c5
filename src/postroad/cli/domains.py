"""`postroad domain`: the domains that an account may send from."""

import click

from postroad.cli import command, naming, output, views
from postroad.model import times
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
    return _report(await services_domains.add(context, found.id, name, verified=verified))


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
    found = await naming.account(context, account)
    domain = await services_domains.by_name(context, found.id, name)
    return _report(await services_domains.verify(context, found.id, domain.id))


def _report(domain: domains.Domain) -> output.Report:
    state = "verified" if domain.verified_at else "not verified yet"
    text = f"{domain.name} is registered, {state}: {domain.id}"
    return output.Report(data={"domain": views.domain(domain)}, text=text)


GROUP = click.Group("domain", commands=[add, show_list, verify], help="Domains that accounts send from.")
