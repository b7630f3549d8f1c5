"""`postroad queue`: inspect, retry and cancel queued recipients."""

from collections.abc import Sequence

import click

from postroad import errors
from postroad.cli import account_option, command, output, queue_texts
from postroad.services import context as services_context
from postroad.services.queue import inspection
from postroad.storage import queue_views

ACCOUNT = click.option("--account", metavar="ACCOUNT", help="Only recipients of this account, by id or unique name.")
DOMAIN = click.option("--domain", metavar="DOMAIN", help="Only recipients at this domain.")
MESSAGE = click.option("--message", metavar="MESSAGE_ID", help="Only the recipients of this message.")
IDS = click.argument("ids", nargs=-1, metavar="IDS")


@click.command("list", cls=command.StoreCommand)
@ACCOUNT
@DOMAIN
@MESSAGE
@click.option("--state", type=click.Choice(queue_views.STATES), help="Only recipients in this state.")
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True, help="Maximum number of rows.")
async def show_list(
    context: services_context.Context,
    *,
    account: str | None,
    domain: str | None,
    message: str | None,
    state: str | None,
    limit: int,
) -> output.Report:
    """List queued recipients, oldest first, with a summary."""
    chosen = await _filter(context, account=account, domain=domain, message=message)
    found = await inspection.overview(context, chosen, state=state, limit=limit)
    return output.Report(data=queue_texts.overview_view(found), text=queue_texts.overview(found))


@click.command("show", cls=command.StoreCommand)
@click.argument("name", metavar="ID")
async def show(context: services_context.Context, name: str) -> output.Report:
    """Show a message or one recipient: its state, the reason, and every attempt."""
    found = await inspection.trace(context, name)
    return output.Report(data=queue_texts.trace_view(found), text=queue_texts.trace(found))


@click.command("retry", cls=command.StoreCommand)
@IDS
@ACCOUNT
@DOMAIN
@MESSAGE
@click.option("--all", "everything", is_flag=True, help="All waiting recipients.")
async def retry(
    context: services_context.Context,
    *,
    ids: tuple[str, ...],
    account: str | None,
    domain: str | None,
    message: str | None,
    everything: bool,
) -> output.Report:
    """Schedule the next attempt of waiting recipients now."""
    _require_one_selection(ids, (account, domain, message), everything=everything)
    done = await inspection.retry(
        context, await _filters(context, ids, account=account, domain=domain, message=message)
    )
    text = f"{queue_texts.recipients(done.changed)} scheduled for an attempt now."
    return output.Report(data={"retried": done.changed, "being_sent": done.held}, text=text + _skipped_note(done))


@click.command("cancel", cls=command.StoreCommand)
@IDS
@ACCOUNT
@DOMAIN
@MESSAGE
@click.option("--yes", is_flag=True, help="Confirm the cancellation of more than one recipient.")
async def cancel(
    context: services_context.Context,
    *,
    ids: tuple[str, ...],
    account: str | None,
    domain: str | None,
    message: str | None,
    yes: bool,
) -> output.Report:
    """Cancel recipients: they fail without further attempts."""
    _require_one_selection(ids, (account, domain, message), everything=False)
    choices = await _filters(context, ids, account=account, domain=domain, message=message)
    meant = (await inspection.count(context, choices)).changed
    if meant > 1 and not yes:
        raise errors.InvalidRequest(f"this cancels {meant} recipients and cannot be undone; add --yes to confirm")
    done = await inspection.cancel(context, choices)
    text = f"{queue_texts.recipients(done.changed)} cancelled."
    return output.Report(data={"cancelled": done.changed, "being_sent": done.held}, text=text + _skipped_note(done))


def _skipped_note(done: inspection.QueueChange) -> str:
    return f" Skipped, because an attempt is in progress: {done.held}." if done.held else ""


def _require_one_selection(ids: Sequence[str], filters: Sequence[str | None], *, everything: bool) -> None:
    """Require exactly one kind of selection, so that no selection never means the whole queue."""
    ways = [bool(ids), any(one is not None for one in filters), everything]
    if sum(ways) != 1:
        raise click.UsageError("Select recipients by id or by options, not both.")


async def _filters(
    context: services_context.Context,
    ids: Sequence[str],
    *,
    account: str | None,
    domain: str | None,
    message: str | None,
) -> list[queue_views.Filter]:
    if ids:
        # An id given twice would be counted twice.
        return [await inspection.filter_by_id(context, one) for one in dict.fromkeys(ids)]
    return [await _filter(context, account=account, domain=domain, message=message)]


async def _filter(
    context: services_context.Context, *, account: str | None, domain: str | None, message: str | None
) -> queue_views.Filter:
    account_id = None if account is None else (await account_option.account(context, account)).id
    if message is not None:
        found = await inspection.filter_by_id(context, message)
        if found.recipient_id is not None:
            raise errors.InvalidRequest("--message: not a message id; it must start with em_")
        if account_id not in {None, found.account_id}:
            raise errors.NotFound(f"message {message} does not exist in this account")
        account_id = found.account_id
    return queue_views.Filter(
        account_id=account_id, message_id=message, domain=None if domain is None else inspection.domain(domain)
    )


GROUP = click.Group("queue", commands=[show_list, show, retry, cancel], help="Inspect and manage the queue.")
