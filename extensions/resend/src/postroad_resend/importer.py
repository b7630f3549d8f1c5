"""Reads an account of Resend, as its API reference describes it: lists of 100, continued after the last id."""

from collections.abc import AsyncIterator, Sequence
from typing import Annotated, Final, Generic, TextIO, TypeVar
from urllib import parse

import click
import msgspec

from postroad import context as services_context
from postroad.cli import imports
from postroad.cli.framework import command, output
from postroad.network.http import json_api
from postroad.services.imports import foreign_templates, found
from postroad.storage.mail import suppressions
from postroad.storage.people import accounts
from postroad_resend import event_format, template_language

URL: Final = "https://api.resend.com"
VARIABLE: Final = "RESEND_API_KEY"
PAGE: Final = 100
# Bodies have a bound of their own when they are saved.
_Id = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]

SOURCES: Final = {
    "bounce": suppressions.Source.BOUNCE,
    "complaint": suppressions.Source.COMPLAINT,
}
ESCAPED: Final = "values are HTML-escaped in the HTML body"


class _Domain(msgspec.Struct):
    id: _Id
    name: str


class _Listed(msgspec.Struct):
    id: _Id


class _Variable(msgspec.Struct):
    key: str
    fallback_value: str | float | None = None


class _Template(msgspec.Struct):
    id: _Id
    name: str = ""
    alias: str | None = None
    status: str = "published"
    subject: str | None = None
    html: str | None = None
    text: str | None = None
    sender: str | None = msgspec.field(default=None, name="from")
    reply_to: list[str] | str | None = None
    variables: list[_Variable] | None = None
    has_unpublished_versions: bool = False


class _Suppression(msgspec.Struct):
    id: _Id
    email: str
    origin: str = "manual"
    created_at: str | None = None


class _Webhook(msgspec.Struct):
    id: _Id
    endpoint: str
    events: list[str] | None = None


Row = TypeVar("Row", _Domain, _Listed, _Suppression, _Webhook)


class _Page(msgspec.Struct, Generic[Row]):
    data: list[Row]
    has_more: bool = False


class ResendReader:
    """Reads with an API key."""

    name = "Resend"
    format = event_format.FORMAT

    def __init__(self, api: json_api.JsonApi) -> None:
        self._api = api

    async def domains(self) -> AsyncIterator[str]:
        """The names of all domains, verified there or not."""
        async for page in self._pages("/domains", _Page[_Domain]):
            for domain in page:
                yield domain.name

    async def templates(self) -> AsyncIterator[found.Template | found.Unusable]:
        """All templates; the list has no bodies, so each is read."""
        async for page in self._pages("/templates", _Page[_Listed]):
            for template in page:
                body = await self._api.get(f"/templates/{parse.quote(template.id, safe='')}")
                yield _template(found.decode(body, _Template))

    async def suppressions(self) -> AsyncIterator[Sequence[found.Suppression]]:
        """All suppressed addresses."""
        async for page in self._pages("/suppressions", _Page[_Suppression], max_pages=found.MAX_SUPPRESSION_PAGES):
            yield [_suppression(suppression) for suppression in page]

    async def webhooks(self) -> AsyncIterator[found.Webhook]:
        """All endpoints, enabled or not."""
        async for page in self._pages("/webhooks", _Page[_Webhook]):
            for webhook in page:
                yield found.Webhook(webhook.endpoint, tuple(webhook.events or ()))

    async def _pages(
        self, path: str, shape: type[_Page[Row]], *, max_pages: int = found.MAX_PAGES
    ) -> AsyncIterator[Sequence[Row]]:
        after = ""
        for _ in range(max_pages):
            page = found.decode(await self._api.get(f"{path}?limit={PAGE}{after}"), shape)
            yield page.data
            if not page.has_more or not page.data:
                return
            last = f"&after={parse.quote(page.data[-1].id, safe='')}"
            if last == after:
                raise json_api.ApiError(f"{path}: the list does not go on after {found.plain(page.data[-1].id)}")
            after = last
        raise json_api.ApiError(f"{path}: more than {max_pages} pages")


def _template(template: _Template) -> found.Template | found.Unusable:
    alias = template.alias or template.id
    shown = found.plain(template.alias or template.name or template.id)
    if template.status != "published":
        return found.Unusable(shown, "it is a draft at Resend; publish it there and import again")
    try:
        bodies = template_language.translate(
            foreign_templates.Bodies(
                template.subject or template.name or alias, template.text or None, template.html or None
            )
        )
    except foreign_templates.Untranslatable as problem:
        return found.Unusable(shown, str(problem))
    return found.Template(alias, bodies, tuple(_notes(template)))


def _notes(template: _Template) -> list[str]:
    notes = []
    if template.html and "{{{" in template.html:
        notes.append(ESCAPED)
    if not template.alias:
        notes.append(f"it has no alias; {found.plain(template.name)!r} is stored under its id")
    if not template.subject:
        notes.append("it has no subject; its name is used where a message gives none")
    if template.sender or template.reply_to:
        notes.append("its from and reply_to are not stored; pass them with every message")
    fallbacks = [found.plain(each.key) for each in template.variables or [] if each.fallback_value is not None]
    if fallbacks:
        notes.append(f"fallback values are not stored; always pass {', '.join(fallbacks)}")
    if template.has_unpublished_versions:
        notes.append("it has unpublished changes at Resend")
    return notes


def _suppression(suppression: _Suppression) -> found.Suppression:
    source = SOURCES.get(suppression.origin, suppressions.Source.IMPORT)
    return found.Suppression(
        suppression.email,
        source,
        f"imported from Resend: {found.plain(suppression.origin)}",
        found.time_of(suppression.created_at),
    )


@click.command("resend", cls=command.AccountCommand)
@imports.url_option(URL)
@imports.key_option(VARIABLE)
@imports.DRY_RUN
async def from_resend(
    context: services_context.Context, *, account: accounts.Account, url: str, key_file: TextIO | None, dry_run: bool
) -> output.Report:
    """Import domains, templates, suppressions and webhooks from Resend into an account.

    What exists is not changed, so it can be repeated. The exit code is 1 if something could not be read.
    """
    key = imports.key(key_file, VARIABLE)
    async with imports.opened(context, url, {"Authorization": f"Bearer {key}"}, key) as api:
        return await imports.run(context, account, ResendReader(api), dry_run=dry_run)
