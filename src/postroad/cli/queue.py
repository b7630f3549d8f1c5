"""`postroad queue`: inspect, retry and cancel queued recipients."""

from collections.abc import Sequence
from typing import Final

import click

from postroad import errors
from postroad.cli import account_option, command, output, queue_texts
from postroad.services import context as services_context
from postroad.services.queue import inspection
from postroad.storage import queue_views

# The options of `_filter`.
FILTERS: Final = (
    click.Option(["--account"], metavar="ACCOUNT", help="Only recipients of this account, by id or unique name."),
    click.Option(["--domain"], metavar="DOMAIN", help="Only recipients at this domain."),
    click.Option(["--message"], metavar="MESSAGE_ID", help="Only the recipients of this message."),
)
IDS = click.argument("ids", nargs=-1, metavar="IDS")


@click.command("list", cls=command.StoreCommand, params=[*FILTERS])
@click.option("--state", type=click.Choice(queue_views.STATES), help="Only recipients in this state.")
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True, help="Maximum number of rows.")
async def show_list(
    context: services_context.Context, *, state: str | None, limit: int, **filters: str | None
) -> output.Report:
    """List queued recipients, oldest first, with a summary."""
    chosen = await _filter(context, **filters)
    found = await inspection.overview(context, chosen, state=state, limit=limit)
    return output.Report(data=queue_texts.overview_view(found), text=queue_texts.overview(found))


@click.command("show", cls=command.StoreCommand)
@click.argument("name", metavar="ID")
async def show(context: services_context.Context, name: str) -> output.Report:
    """Show a message or one recipient: its state, the reason, and every attempt."""
    found = await inspection.trace(context, name)
    return output.Report(data=queue_texts.trace_view(found), text=queue_texts.trace(found))


@click.command("retry", cls=command.StoreCommand, params=[*FILTERS])
@IDS
@click.option("--all", "everything", is_flag=True, help="All waiting recipients.")
async def retry(
    context: services_context.Context, *, ids: tuple[str, ...], everything: bool, **filters: str | None
) -> output.Report:
    """Schedule the next attempt of waiting recipients now."""
    done = await inspection.retry(context, await _selection(context, ids, filters, everything=everything))
    text = f"{output.recipients(done.changed)} scheduled for an attempt now."
    return output.Report(data={"retried": done.changed, "being_sent": done.held}, text=text + _skipped_note(done))


@click.command("cancel", cls=command.StoreCommand, params=[*FILTERS])
@IDS
@click.option("--yes", is_flag=True, help="Confirm the cancellation of more than one recipient.")
async def cancel(
    context: services_context.Context, *, ids: tuple[str, ...], yes: bool, **filters: str | None
) -> output.Report:
    """Cancel recipients: they fail without further attempts."""
    choices = await _selection(context, ids, filters)
    meant = (await inspection.count(context, choices)).changed
    if meant > 1 and not yes:
        raise errors.InvalidRequest(f"this cancels {meant} recipients and cannot be undone; add --yes to confirm")
    done = await inspection.cancel(context, choices)
    text = f"{output.recipients(done.changed)} canceled."
    return output.Report(data={"canceled": done.changed, "being_sent": done.held}, text=text + _skipped_note(done))


def _skipped_note(done: inspection.QueueChange) -> str:
    return f" Skipped, because an attempt is in progress: {done.held}." if done.held else ""


async def _selection(
    context: services_context.Context, ids: Sequence[str], filters: dict[str, str | None], *, everything: bool = False
) -> list[queue_views.Filter]:
    """Exactly one kind of selection is required, so that no selection never means the whole queue."""
    ways = [bool(ids), any(one is not None for one in filters.values()), everything]
    if sum(ways) != 1:
        raise click.UsageError("Select recipients by id or by options, not both.")
    if ids:
        # An id given twice would be counted twice.
        return [await inspection.filter_by_id(context, one) for one in dict.fromkeys(ids)]
    return [await _filter(context, **filters)]


async def _filter(
    context: services_context.Context, *, account: str | None, domain: str | None, message: str | None
) -> queue_views.Filter:
    account_id = None if account is None else (await account_option.account(context, account)).id
    if message is not None:
        found = await inspection.filter_by_id(context, message)
        if found.recipient_id is not None:
            raise click.UsageError("--message: not a message id; it must start with em_")
        if account_id not in {None, found.account_id}:
            raise errors.NotFound(f"message {message} does not exist in this account")
        account_id = found.account_id
    return queue_views.Filter(
        account_id=account_id, message_id=message, domain=None if domain is None else inspection.domain(domain)
    )
