"""`postroad messages` and `postroad show`: the messages of an account, and everything about one."""

from collections.abc import Iterator
from typing import Any, Final
from urllib import parse

import click

from postroad.cli import output, server_command
from postroad.network import api_client

TITLES: Final = ("id", "accepted", "status", "recipients", "from", "subject")
MEMBERS: Final = ("id", "created_at", "status", "recipient_count", "from", "subject")
STATUSES: Final = ("queued", "delivered", "partial", "failed")
MAX_EVENTS: Final = 100
# Words for people, as in the dashboard; the other verdicts of an attempt are such words already.
RESULTS: Final = {"retry": "deferred"}


@click.command("messages", cls=server_command.ServerCommand)
@click.option(
    "--search",
    metavar="TEXT",
    help="Only messages that this search finds, as in the dashboard: 'to:@gmail.com status:bounced after:2d'.",
)
@click.option("--status", type=click.Choice(STATUSES), help="Only messages with this status.")
@click.option("--from", "sender", metavar="ADDRESS", help="Only messages from this address.")
@click.option("--to", metavar="ADDRESS", help="Only messages to this address.")
@click.option("--tag", help="Only messages with this tag.")
@click.option("--metadata", metavar="KEY:VALUE", help="Only messages with this value of a metadata key.")
@click.option("--after", metavar="TIME", help="Only messages accepted at this time or later, as RFC 3339.")
@click.option("--before", metavar="TIME", help="Only messages accepted before this time, as RFC 3339.")
@click.option("--test", is_flag=True, help="Messages of test keys, instead of live ones.")
@click.option("--limit", type=click.IntRange(1, 100), default=25, show_default=True, help="Maximum number of rows.")
@click.option("--cursor", metavar="CURSOR", help="Continue after the previous page.")
def messages(server: api_client.Client, *, sender: str | None, test: bool, **filters: Any) -> output.Report:
    """List messages, newest first."""
    mode = "test" if test else None
    found = server.get("/v1/messages", **{"from": sender, "mode": mode, **filters})
    rows = server_command.rows(found.get("messages"), *MEMBERS)
    text = output.printable_table(TITLES, rows, empty="No messages match.")
    following = found.get("next_cursor")
    if following is not None:
        text += f"\nMore rows: --cursor {output.printable(str(following))}"
    return output.Report(data=found, text=text)


@click.command("show", cls=server_command.ServerCommand)
@click.argument("message_id", metavar="ID")
def show(server: api_client.Client, message_id: str) -> output.Report:
    """Show everything about a message: recipients, attempts, why it waits, and webhooks."""
    found = server.get(f"/v1/messages/{parse.quote(message_id, safe='')}")
    events = _events(server, message_id)
    lines = [*_head(found), *_recipients(found), *_reports(found), *_event_lines(events)]
    return output.Report(data={**found, "events": events}, text="\n".join(map(output.printable, lines)))


def _head(found: dict[str, Any]) -> Iterator[str]:
    yield f"{found.get('id')}: {found.get('status')}"
    for title, member in (("From", "from"), ("Subject", "subject"), ("Accepted", "created_at"), ("Source", "source")):
        yield f"{title}: {found.get(member)}"
    for title, member in (
        ("Tags", "tags"),
        ("Metadata", "metadata"),
        ("Send at", "send_at"),
        ("Expires", "expires_at"),
    ):
        if found.get(member):
            yield f"{title}: {_value(found[member])}"


def _value(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}={one}" for name, one in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _recipients(found: dict[str, Any]) -> Iterator[str]:
    attempts = server_command.objects(found.get("attempts"))
    for one in server_command.objects(found.get("recipients")):
        yield ""
        yield f"{one.get('email')}: {one.get('status')}"
        for number, attempt in enumerate((a for a in attempts if a.get("recipient_id") == one.get("id")), 1):
            result = RESULTS.get(str(attempt.get("verdict")), attempt.get("verdict"))
            yield f"  Attempt {number}, {attempt.get('started_at')}: {result}{_at(attempt)}"
            reply = f"{attempt.get('smtp_code') or ''} {attempt.get('smtp_response') or ''}".strip()
            if reply:
                yield f"    Reply: {reply}"
            if attempt.get("explanation") and attempt.get("verdict") != "delivered":
                yield f"    {attempt['explanation']}"
        queue = one.get("queue")
        reason = queue.get("reason") if isinstance(queue, dict) else None
        if isinstance(reason, dict):
            yield f"  Waiting: {reason.get('text')}"


def _at(attempt: dict[str, Any]) -> str:
    return f", {attempt['host']} ({attempt.get('address')})" if attempt.get("host") else ""


def _reports(found: dict[str, Any]) -> Iterator[str]:
    for one in server_command.objects(found.get("async_bounces")):
        yield f"Report, {one.get('received_at')}: {one.get('action')} {one.get('status')} {one.get('response')}"


def _events(server: api_client.Client, message_id: str) -> list[dict[str, Any]] | None:
    """The webhook deliveries of the message; None if the key may not see them."""
    try:
        endpoints = server_command.objects(server.get("/v1/webhooks").get("webhooks"))
        found = [
            {**one, "webhook_id": endpoint.get("id"), "url": endpoint.get("url")}
            for endpoint in endpoints
            for one in server_command.objects(
                server.get(
                    f"/v1/webhooks/{parse.quote(str(endpoint.get('id')), safe='')}/deliveries",
                    message_id=message_id,
                    limit=MAX_EVENTS,
                ).get("deliveries")
            )
        ]
    except api_client.ServerError as problem:
        if problem.status in server_command.REFUSED:
            return None
        raise
    return sorted(found, key=lambda one: str(one.get("created_at")))


def _event_lines(events: list[dict[str, Any]] | None) -> Iterator[str]:
    if events is None:
        yield ""
        yield "Webhooks are not shown: the key does not have the scope 'webhooks'."
        return
    for number, one in enumerate(events):
        if not number:
            yield ""
        yield f"Webhook {one.get('event_type')} to {one.get('url')}: {one.get('status')}"
