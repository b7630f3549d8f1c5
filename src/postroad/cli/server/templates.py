"""`postroad template`: templates with {{placeholders}}."""

from typing import Final, TextIO

import click

from postroad import context as services_context
from postroad import errors
from postroad.cli.framework import command, output
from postroad.model.units import identifiers, times
from postroad.services.templates import templates
from postroad.storage.people import accounts

FIELDS: Final = "id account_id alias subject text html created_at updated_at".split()
FILE = click.File("r", encoding="utf-8")


@click.command("put", cls=command.AccountCommand)
@click.argument("alias")
@click.option("--subject", required=True, help="Subject, with {{placeholders}}.")
@click.option("--text", help="Plain text body, with {{placeholders}}.")
@click.option("--text-file", type=FILE, help="Read the plain text body from a file; - is standard input.")
@click.option("--html", help="HTML body, with {{placeholders}}.")
@click.option("--html-file", type=FILE, help="Read the HTML body from a file; - is standard input.")
@click.option("--layout", metavar="ALIAS", help="Alias of the layout: a template with {{> content}}.")
async def put(
    context: services_context.Context,
    *,
    alias: str,
    account: accounts.Account,
    subject: str,
    text: str | None,
    text_file: TextIO | None,
    html: str | None,
    html_file: TextIO | None,
    layout: str | None,
) -> output.Report:
    """Create a template, or replace the one with this alias."""
    plain = _content(text, text_file, name="text")
    rich = _content(html, html_file, name="html")
    template = await templates.put(context, account.id, alias, subject=subject, text=plain, html=rich, layout=layout)
    return output.Report(
        data={"template": times.wire_fields(template, FIELDS)}, text=f"Template {template.alias!r} is stored."
    )


@click.command("list", cls=command.AccountCommand)
@click.option("--after", default="", metavar="ALIAS", help="Start after this template.")
@click.option("--limit", type=click.IntRange(1, 1000), default=100, show_default=True, help="Maximum number of rows.")
async def show_list(
    context: services_context.Context, account: accounts.Account, *, after: str, limit: int
) -> output.Report:
    """List an account's templates by alias."""
    listed = await templates.page(context, account.id, after, limit + 1)
    page, next_cursor = identifiers.page(listed, limit=limit, key="alias")
    rows = [(one.alias, one.subject, times.to_wire(one.updated_at)) for one in page]
    text = output.table(["alias", "subject", "updated"], rows, empty="There are no templates.")
    data = {"templates": [times.wire_fields(one, FIELDS) for one in page], "next_after": next_cursor}
    return output.Report(data=data, text=output.with_more(text, next_cursor))


def _content(given: str | None, file: TextIO | None, *, name: str) -> str | None:
    if given is not None and file is not None:
        raise click.UsageError(f"--{name} and --{name}-file cannot be combined; use one of them.")
    try:
        return file.read() if file else given
    except UnicodeDecodeError:
        raise errors.InvalidRequest(f"{file.name if file else name} is not UTF-8 text") from None
