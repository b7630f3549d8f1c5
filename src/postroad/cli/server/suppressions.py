"""`postroad suppression`: the suppression list of an account."""

from typing import Final
from urllib import parse

import click

from postroad.cli.framework import output, server_command
from postroad.network.http import api_client

PATH: Final = "/v1/suppressions"
TITLES: Final = ("address", "since", "source", "reason")
MEMBERS: Final = ("email", "created_at", "source", "reason")
SOURCES: Final = ("bounce", "late_bounce", "complaint", "operator", "account", "import")
# Rows of one request.
PAGE: Final = 100


@click.command("list", cls=server_command.EitherCommand, local="postroad.cli.server.suppressions_local.show_list")
@click.option("--after", default="", metavar="EMAIL", help="Start after this address.")
@click.option("--limit", type=click.IntRange(1, 1000), default=100, show_default=True, help="Maximum number of rows.")
@click.option("--source", type=click.Choice(SOURCES), help="Only entries from this source.")
def show_list(server: api_client.Client, *, after: str, limit: int, source: str | None) -> output.Report:
    """List the suppressed addresses of an account."""
    listed: list[dict[str, object]] = []
    # A cursor of this list is the address before it, in hexadecimal.
    cursor = after.strip().lower().encode().hex() or None
    has_more = False
    for page in server_command.pages(server, PATH, cursor=cursor, limit=min(PAGE, limit), source=source):
        listed += server_command.objects(page.get("suppressions"))
        has_more = len(listed) > limit or page.get("next_cursor") is not None
        if len(listed) >= limit:
            break
    listed = listed[:limit]
    following = str(listed[-1].get("email")) if has_more and listed else None
    text = output.printable_table(TITLES, server_command.rows(listed, *MEMBERS), empty="The suppression list is empty.")
    shown = None if following is None else output.printable(following)
    return output.Report(data={"suppressions": listed, "next_after": following}, text=output.with_more(text, shown))


@click.command("add", cls=server_command.EitherCommand, local="postroad.cli.server.suppressions_local.add")
@click.argument("email")
@click.option("--reason", help="Reason, shown to senders. Default: who added it.")
def add(server: api_client.Client, *, email: str, reason: str | None) -> output.Report:
    """Add an address to the suppression list of an account."""
    body = {"email": email} if reason is None else {"email": email, "reason": reason}
    found = server.call("POST", PATH, body)
    one = found.get("suppression")
    shown = one if isinstance(one, dict) else {}
    text = output.printable(f"{shown.get('email')} is suppressed: {shown.get('reason')}")
    return output.Report(data={"suppression": shown}, text=text)


@click.command("remove", cls=server_command.EitherCommand, local="postroad.cli.server.suppressions_local.remove")
@click.argument("email")
def remove(server: api_client.Client, email: str) -> output.Report:
    """Remove an address from the suppression list of an account. It can receive the next message."""
    server.call("DELETE", f"{PATH}/{parse.quote(email, safe='')}")
    return output.Report(data={"removed": email}, text=f"{output.printable(email)} is no longer suppressed.")
