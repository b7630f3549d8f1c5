"""`postroad messages`, `show` and `tail`: the messages of an account, one of them, and results as they happen."""

import collections
import json
import time
from collections.abc import Iterator
from typing import Any, Final
from urllib import parse

import click

from postroad.cli.framework import output, server_command
from postroad.network.http import api_client

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
    reports = (
        f"Report, {report.get('received_at')}: {report.get('action')} {report.get('status')} {report.get('response')}"
        for report in server_command.objects(found.get("async_bounces"))
    )
    lines = [*_head(found), *_recipients(found), *reports, *_event_lines(events)]
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
        return ", ".join(f"{name}={item}" for name, item in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _recipients(found: dict[str, Any]) -> Iterator[str]:
    attempts = server_command.objects(found.get("attempts"))
    for recipient in server_command.objects(found.get("recipients")):
        yield ""
        yield f"{recipient.get('email')}: {recipient.get('status')}"
        for number, attempt in enumerate((a for a in attempts if a.get("recipient_id") == recipient.get("id")), 1):
            result = RESULTS.get(str(attempt.get("verdict")), attempt.get("verdict"))
            at = f", {attempt['host']} ({attempt.get('address')})" if attempt.get("host") else ""
            yield f"  Attempt {number}, {attempt.get('started_at')}: {result}{at}"
            reply = f"{attempt.get('smtp_code') or ''} {attempt.get('smtp_response') or ''}".strip()
            if reply:
                yield f"    Reply: {reply}"
            if attempt.get("explanation") and attempt.get("verdict") != "delivered":
                yield f"    {attempt['explanation']}"
        queue = recipient.get("queue")
        reason = queue.get("reason") if isinstance(queue, dict) else None
        if isinstance(reason, dict):
            yield f"  Waiting: {reason.get('text')}"


def _events(server: api_client.Client, message_id: str) -> list[dict[str, Any]] | None:
    """The webhook deliveries of the message; None if the key may not see them."""
    try:
        endpoints = server_command.objects(server.get("/v1/webhooks").get("webhooks"))
        found = [
            {**delivery, "webhook_id": endpoint.get("id"), "url": endpoint.get("url")}
            for endpoint in endpoints
            for delivery in server_command.objects(
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
    return sorted(found, key=lambda delivery: str(delivery.get("created_at")))


def _event_lines(events: list[dict[str, Any]] | None) -> Iterator[str]:
    if events is None:
        yield ""
        yield "Webhooks are not shown: the key does not have the scope 'webhooks'."
        return
    for number, event in enumerate(events):
        if not number:
            yield ""
        yield f"Webhook {event.get('event_type')} to {event.get('url')}: {event.get('status')}"


# `postroad tail`: messages and their results as they happen, until Ctrl-C.
#
# It asks once a second for new messages, and for the details of those that are not final, a few at a time, so that it
# uses a small part of what an API key may do. What happens while the server cannot be reached is shown when it can
# again.

POLL_SECONDS: Final = 1.0
PAGE: Final = 100
# More new messages than this between two requests are not shown one by one.
MAX_PAGES: Final = 5
# Messages that are not final; the oldest are forgotten first.
MAX_OPEN: Final = 500
MAX_DETAILS: Final = 8
REMEMBERED: Final = 10 * PAGE
OPEN: Final = "queued"

Event = dict[str, Any]


@click.command(
    "tail",
    params=[
        click.Option(["--test"], is_flag=True, help="Messages of test keys, instead of live ones."),
        server_command.URL,
        *server_command.LOCAL,
        click.Option(["--json", "as_json"], is_flag=True, help="Print one JSON object per line."),
    ],
)
def tail(*, test: bool, as_json: bool, **chosen: Any) -> None:
    """Show messages and their results as they happen, until Ctrl-C."""
    server = server_command.connect(chosen)
    click.echo(f"Server: {server.url}. Press Ctrl-C to stop.", err=True)
    follower = Follower(server, mode="test" if test else "live")
    again = f"{server.url} can be reached again."
    with server_command.until_interrupted(server.close):
        for event in server_command.follow(follower.step, seconds=POLL_SECONDS, again=again):
            click.echo(json.dumps(event) if as_json else line(event))


class Follower:
    """What has been shown of the messages of an account, and what is new."""

    def __init__(self, server: api_client.Client, *, mode: str) -> None:
        self._server = server
        self._mode = mode
        self._seen: collections.OrderedDict[str, None] = collections.OrderedDict()
        # What was last shown of the recipients, by message.
        self._open: collections.OrderedDict[str, dict[str, object]] = collections.OrderedDict()
        self._has_begun = False

    def step(self) -> Iterator[Event]:
        """What has happened since the last step; nothing in the first."""
        new = self._new_messages()
        if not self._has_begun:
            self._has_begun = True
            return
        for message in reversed(new):
            members = {name: message.get(name) for name in ("from", "subject", "recipient_count")}
            yield {"event": "accepted", "message_id": message["id"], **members}
            self._open[message["id"]] = {}
            if len(self._open) > MAX_OPEN:
                self._open.popitem(last=False)
        for message_id in [*self._open][:MAX_DETAILS]:
            yield from self._results(message_id)

    def _new_messages(self) -> list[dict[str, Any]]:
        """Those that have not been seen, newest first. A message may become visible after a newer one."""
        new: list[dict[str, Any]] = []
        cursor = None
        for _ in range(MAX_PAGES):
            found = self._server.get("/v1/messages", mode=self._mode, limit=PAGE, cursor=cursor)
            page = [
                message
                for message in server_command.objects(found.get("messages"))
                if isinstance(message.get("id"), str)
            ]
            unseen = [message for message in page if message["id"] not in self._seen]
            new += unseen
            cursor = found.get("next_cursor")
            if not self._has_begun or cursor is None or len(unseen) < len(page):
                break
        for message in reversed(new):
            self._seen[message["id"]] = None
        while len(self._seen) > REMEMBERED:
            self._seen.popitem(last=False)
        return new

    def _results(self, message_id: str) -> Iterator[Event]:
        """What is new of the recipients of a message. It is asked for again after all others."""
        shown = self._open.pop(message_id)
        try:
            found = self._server.get(f"/v1/messages/{parse.quote(message_id, safe='')}")
        except api_client.ServerError:
            self._open[message_id] = shown
            raise
        if found.get("status") == OPEN:
            self._open[message_id] = shown
        for recipient in server_command.objects(found.get("recipients")):
            state = [recipient.get("status"), recipient.get("attempt_count")]
            if recipient.get("status") != OPEN and shown.get(str(recipient.get("id"))) != state:
                shown[str(recipient.get("id"))] = state
                yield {
                    "event": recipient.get("status"),
                    "message_id": message_id,
                    "to": recipient.get("email"),
                    "smtp_code": recipient.get("last_smtp_code"),
                    "smtp_response": recipient.get("last_smtp_response"),
                }


def line(event: Event) -> str:
    if event["event"] == "accepted":
        rest = f"{event['from']}, {output.recipients(event['recipient_count'])}  {event['subject']}"
    else:
        rest = f"{event['to']}  {event['smtp_code'] or ''} {event['smtp_response'] or ''}"
    columns = [time.strftime("%H:%M:%S"), str(event["event"]).ljust(9), str(event["message_id"]), rest.strip()]
    return output.printable("  ".join(columns))
