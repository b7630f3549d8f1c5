"""`postroad queue`: what waits and why, and what an operator can do about it."""

from collections.abc import Sequence

import click

from postroad import errors
from postroad.cli import account_option, command, output, queue_texts
from postroad.services import context as services_context
from postroad.services.queue import inspection
from postroad.storage import queue_views

ACCOUNT = click.option("--account", metavar="ACCOUNT", help="Only this account's; by its id or unique name.")
DOMAIN = click.option("--domain", metavar="DOMAIN", help="Only recipients at this domain.")
MESSAGE = click.option("--message", metavar="MESSAGE_ID", help="Only the recipients of this message.")
IDS = click.argument("ids", nargs=-1, metavar="IDS")


@click.command("list", cls=command.StoreCommand)
@ACCOUNT
@DOMAIN
@MESSAGE
@click.option("--state", type=click.Choice(queue_views.STATES), help="Only recipients in this state.")
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True, help="How many at the most.")
async def show_list(
    context: services_context.Context,
    *,
    account: str | None,
    domain: str | None,
    message: str | None,
    state: str | None,
    limit: int,
) -> output.Report:
    """List the recipients that are not final, oldest first, with a summary."""
    chosen = await _filter(context, account=account, domain=domain, message=message)
    found = await inspection.overview(context, chosen, state=state, limit=limit)
    return output.Report(data=queue_texts.overview_view(found), text=queue_texts.overview(found))


@click.command("show", cls=command.StoreCommand)
@click.argument("name", metavar="ID")
async def show(context: services_context.Context, name: str) -> output.Report:
    """Show all that is known of a message or of one recipient: where it is, why, and what was tried."""
    found = await inspection.trace(context, name)
    return output.Report(data=queue_texts.trace_view(found), text=queue_texts.trace(found))


@click.command("retry", cls=command.StoreCommand)
@IDS
@ACCOUNT
@DOMAIN
@MESSAGE
@click.option("--all", "everything", is_flag=True, help="All that wait.")
async def retry(
    context: services_context.Context,
    *,
    ids: tuple[str, ...],
    account: str | None,
    domain: str | None,
    message: str | None,
    everything: bool,
) -> output.Report:
    """Let recipients that wait for their next attempt be tried now."""
    _require_one_selection(ids, (account, domain, message), everything=everything)
    done = await inspection.retry(
        context, await _filters(context, ids, account=account, domain=domain, message=message)
    )
    text = f"{queue_texts.recipients(done.changed)} will be tried now."
    return output.Report(data={"retried": done.changed, "being_sent": done.held}, text=text + _skipped_note(done))


@click.command("cancel", cls=command.StoreCommand)
@IDS
@ACCOUNT
@DOMAIN
@MESSAGE
@click.option("--yes", is_flag=True, help="Cancel more than one recipient without asking back.")
async def cancel(
    context: services_context.Context,
    *,
    ids: tuple[str, ...],
    account: str | None,
    domain: str | None,
    message: str | None,
    yes: bool,
) -> output.Report:
    """Give recipients up: they end as failed, and are not tried any more."""
    _require_one_selection(ids, (account, domain, message), everything=False)
    choices = await _filters(context, ids, account=account, domain=domain, message=message)
    meant = (await inspection.count(context, choices)).changed
    if meant > 1 and not yes:
        raise errors.InvalidRequest(f"this would cancel {meant} recipients for good; if you mean it, add --yes")
    done = await inspection.cancel(context, choices)
    text = f"{queue_texts.recipients(done.changed)} cancelled."
    return output.Report(data={"cancelled": done.changed, "being_sent": done.held}, text=text + _skipped_note(done))


def _skipped_note(done: inspection.QueueChange) -> str:
    return f" Left alone, because being sent right now: {done.held}." if done.held else ""


def _require_one_selection(ids: Sequence[str], filters: Sequence[str | None], *, everything: bool) -> None:
    """One way to choose at a time; and nobody means the whole queue by saying nothing."""
    ways = [bool(ids), any(one is not None for one in filters), everything]
    if sum(ways) != 1:
        raise click.UsageError("Which recipients? Give ids, or options that choose them, and not both.")


async def _filters(
    context: services_context.Context,
    ids: Sequence[str],
    *,
    account: str | None,
    domain: str | None,
    message: str | None,
) -> list[queue_views.Filter]:
    if ids:
        # The same twice would be counted twice.
        return [await inspection.filter_by_id(context, one) for one in dict.fromkeys(ids)]
    return [await _filter(context, account=account, domain=domain, message=message)]


async def _filter(
    context: services_context.Context, *, account: str | None, domain: str | None, message: str | None
) -> queue_views.Filter:
    account_id = None if account is None else (await account_option.account(context, account)).id
    if message is not None:
        found = await inspection.filter_by_id(context, message)
        if found.recipient_id is not None:
            raise errors.InvalidRequest("--message takes the id of a message, which begins with em_")
        if account_id not in {None, found.account_id}:
            raise errors.NotFound(f"the account has no message {message}")
        account_id = found.account_id
    return queue_views.Filter(
        account_id=account_id, message_id=message, domain=None if domain is None else inspection.domain(domain)
    )


GROUP = click.Group("queue", commands=[show_list, show, retry, cancel], help="Mail that is on its way.")
