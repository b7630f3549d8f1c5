"""`postroad suppression`: the addresses that an account's mail is not sent to."""

import click

from postroad.cli import command, naming, output, views
from postroad.model import cursors, times
from postroad.services import context as services_context
from postroad.services import queue_reasons, suppressions

TITLES = ("address", "since", "source", "reason")


@click.command("list", cls=command.StoreCommand)
@naming.account_option
@click.option("--after", default="", metavar="EMAIL", help="Start behind this address.")
@click.option("--limit", type=click.IntRange(1, 1000), default=100, show_default=True, help="How many at the most.")
async def show_list(context: services_context.Context, account: str | None, *, after: str, limit: int) -> output.Report:
    """List the addresses that get no mail of an account, and why."""
    found = await naming.account(context, account)
    listed = await suppressions.page(context, found.id, after, limit + 1)
    page, following = listed[:limit], cursors.following([one.email_key for one in listed], limit=limit)
    rows = [
        (one.email_key, times.to_wire(one.created_at), one.source, queue_reasons.shortened(one.reason)) for one in page
    ]
    text = output.table(TITLES, rows, empty="There are no suppressed addresses.")
    data = {"suppressions": [views.suppression(one) for one in page], "next_after": following}
    return output.Report(data=data, text=output.with_more(text, following))


@click.command("add", cls=command.StoreCommand)
@click.argument("email")
@naming.account_option
@click.option("--reason", default="put there by the operator", show_default=True, help="Why; senders see it.")
async def add(context: services_context.Context, *, email: str, account: str | None, reason: str) -> output.Report:
    """Let an address get no more mail of an account."""
    found = await naming.account(context, account)
    stored = await suppressions.add(context, found.id, email, reason=reason)
    text = f"{stored.email_key} gets no mail of this account: {queue_reasons.shortened(stored.reason)}"
    return output.Report(data={"suppression": views.suppression(stored)}, text=text)


@click.command("remove", cls=command.StoreCommand)
@click.argument("email")
@naming.account_option
async def remove(context: services_context.Context, email: str, account: str | None) -> output.Report:
    """Let an address get mail of an account again."""
    found = await naming.account(context, account)
    removed = await suppressions.remove(context, found.id, email)
    return output.Report(data={"removed": removed}, text=f"{removed} can get mail of this account again.")


GROUP = click.Group("suppression", commands=[show_list, add, remove], help="Addresses that get no mail.")
