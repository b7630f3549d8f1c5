"""Reads a server of Postmark, as its API reference describes it.

Lists are continued by an offset. The suppressions of a message stream come as one dump; where that is larger than a
response may be, it is read in ranges of days, each half as long as the one that was too large.
"""

import contextlib
import datetime as dt
import os
from collections.abc import AsyncIterator, Callable, Sequence
from http import HTTPStatus
from typing import Final, TextIO, TypeVar
from urllib import parse

import click
import msgspec

from postroad import context as services_context
from postroad.cli import imports
from postroad.cli.framework import command, output
from postroad.network.http import json_api
from postroad.services.imports import foreign_templates, found
from postroad.services.webhooks import signed_requests
from postroad.storage.mail import suppressions
from postroad.storage.people import accounts
from postroad_postmark import event_format, template_language

URL: Final = "https://api.postmarkapp.com"
VARIABLE: Final = "POSTMARK_SERVER_TOKEN"
ACCOUNT_VARIABLE: Final = "POSTMARK_ACCOUNT_TOKEN"
PAGE: Final = 500
# Of message streams, and of spans of a dump.
MAX_STREAMS: Final = 100
DEFAULT_STREAM: Final = "outbound"
MAX_SPANS: Final = 1_000
# Postmark began in 2010.
FIRST_DAY: Final = dt.date(2010, 1, 1)

SOURCES: Final = {
    "HardBounce": suppressions.Source.BOUNCE,
    "SpamComplaint": suppressions.Source.COMPLAINT,
}


class _Domain(msgspec.Struct, rename="pascal"):
    name: str


class _Domains(msgspec.Struct, rename="pascal"):
    total_count: int
    domains: list[_Domain]


class _ListedTemplate(msgspec.Struct, rename="pascal"):
    template_id: int
    template_type: str = "Standard"


class _ListedTemplates(msgspec.Struct, rename="pascal"):
    total_count: int
    templates: list[_ListedTemplate]


class _Template(msgspec.Struct, rename="pascal"):
    template_id: int
    name: str = ""
    alias: str | None = None
    subject: str | None = None
    html_body: str | None = None
    text_body: str | None = None
    active: bool = True
    layout_template: str | None = None


class _Stream(msgspec.Struct, rename={"id": "ID", "kind": "MessageStreamType"}):
    id: str
    kind: str = ""


class _Streams(msgspec.Struct, rename="pascal"):
    message_streams: list[_Stream]


class _Suppression(msgspec.Struct, rename="pascal"):
    email_address: str
    suppression_reason: str = ""
    created_at: str | None = None


class _Suppressions(msgspec.Struct, rename="pascal"):
    suppressions: list[_Suppression]


class _Trigger(msgspec.Struct, rename="pascal"):
    enabled: bool = False


class _HttpAuth(msgspec.Struct, rename="pascal"):
    username: str
    password: str


class _Header(msgspec.Struct, rename="pascal"):
    name: str
    value: str


class _Webhook(msgspec.Struct, rename="pascal"):
    url: str
    triggers: dict[str, _Trigger] | None = None
    http_auth: _HttpAuth | None = None
    http_headers: list[_Header] | None = None


class _Webhooks(msgspec.Struct, rename="pascal"):
    webhooks: list[_Webhook]


Row = TypeVar("Row")


class PostmarkReader:
    """Reads with a server token; domains belong to the account, and need its token."""

    name = "Postmark"
    format = event_format.FORMAT

    def __init__(self, server: json_api.JsonApi, account: json_api.JsonApi | None, *, today: dt.date) -> None:
        self._server = server
        self._account = account
        self._today = today

    async def domains(self) -> AsyncIterator[str]:
        """The names of all domains, verified there or not."""
        if self._account is None:
            raise found.NotRead("the account token is needed; set POSTMARK_ACCOUNT_TOKEN or use --account-key-file")
        async for page in _pages(self._account, "/domains", _read_domains):
            for domain in page:
                yield domain.name

    async def templates(self) -> AsyncIterator[found.Template | found.Unusable]:
        """All templates, with their layouts merged into them; the list has no bodies, so each is read."""
        layouts: dict[str, foreign_templates.Bodies] = {}
        async for page in _pages(self._server, "/templates", _read_templates):
            for template in page:
                if template.template_type != "Layout":
                    yield await self._template(template.template_id, layouts)

    async def suppressions(self) -> AsyncIterator[Sequence[found.Suppression]]:
        """The suppressed addresses of all streams that send."""
        for stream in await self._streams():
            async for page in self._dump(f"/message-streams/{parse.quote(stream, safe='')}/suppressions/dump"):
                yield page

    async def webhooks(self) -> AsyncIterator[found.Webhook]:
        """All endpoints of all streams."""
        for webhook in found.decode(await self._server.get("/webhooks"), _Webhooks).webhooks:
            wanted = tuple(name for name, trigger in (webhook.triggers or {}).items() if trigger.enabled)
            headers = [(each.name, each.value) for each in webhook.http_headers or ()]
            if webhook.http_auth:
                headers.append(
                    signed_requests.basic_authentication(webhook.http_auth.username, webhook.http_auth.password)
                )
            yield found.Webhook(webhook.url, wanted, tuple(headers))

    async def _streams(self) -> Sequence[str]:
        """The ids of the streams that send. What speaks Postmark's API without streams has the default one."""
        try:
            body = await self._server.get("/message-streams?MessageStreamType=All")
        except json_api.Refused as problem:
            if problem.status == HTTPStatus.NOT_FOUND:
                return (DEFAULT_STREAM,)
            raise
        streams = [
            message_stream.id
            for message_stream in found.decode(body, _Streams).message_streams
            if message_stream.kind != "Inbound"
        ]
        if len(streams) > MAX_STREAMS:
            raise json_api.ApiError(f"/message-streams: more than {MAX_STREAMS}")
        return streams

    async def _template(
        self, template_id: int, layouts: dict[str, foreign_templates.Bodies]
    ) -> found.Template | found.Unusable:
        template = found.decode(await self._server.get(f"/templates/{template_id}"), _Template)
        alias = template.alias or str(template.template_id)
        shown = found.plain(template.alias or template.name or alias)
        if not template.active:
            return found.Unusable(shown, "it is inactive at Postmark")
        layout = template.layout_template
        if layout and layout not in layouts:
            read = found.decode(await self._server.get(f"/templates/{parse.quote(layout, safe='')}"), _Template)
            layouts[layout] = _bodies(read)
        try:
            bodies = template_language.translate(_bodies(template), layouts[layout] if layout else None)
        except foreign_templates.Untranslatable as problem:
            return found.Unusable(shown, str(problem))
        return found.Template(alias.lower(), bodies, tuple(_notes(template)))

    async def _dump(self, path: str) -> AsyncIterator[Sequence[found.Suppression]]:
        """A stream's dump, in as few parts as its size permits."""
        spans: list[tuple[dt.date, dt.date] | None] = [None]
        for _ in range(MAX_SPANS):
            span = spans.pop()
            query = "" if span is None else f"?fromdate={span[0]}&todate={span[1]}"
            try:
                body = await self._server.get(f"{path}{query}")
            except json_api.TooLarge:
                first, last = span or (FIRST_DAY, self._today)
                if first == last:
                    raise
                middle = first + (last - first) // 2
                spans += [(middle + dt.timedelta(days=1), last), (first, middle)]
            else:
                yield [_suppression(suppression) for suppression in found.decode(body, _Suppressions).suppressions]
            if not spans:
                return
        raise _endless(path)


async def _pages(
    api: json_api.JsonApi, path: str, read: Callable[[bytes], tuple[int, list[Row]]]
) -> AsyncIterator[list[Row]]:
    """A list, page by page, as long as each brings something else."""
    seen, before = 0, None
    for _ in range(found.MAX_PAGES):
        total, rows = read(await api.get(f"{path}?count={PAGE}&offset={seen}"))
        if rows == before:
            break
        yield rows
        seen, before = seen + len(rows), rows
        if not rows or seen >= total:
            return
    raise _endless(path)


def _read_domains(body: bytes) -> tuple[int, list[_Domain]]:
    page = found.decode(body, _Domains)
    return page.total_count, page.domains


def _read_templates(body: bytes) -> tuple[int, list[_ListedTemplate]]:
    page = found.decode(body, _ListedTemplates)
    return page.total_count, page.templates


def _bodies(template: _Template) -> foreign_templates.Bodies:
    return foreign_templates.Bodies(template.subject or "", template.text_body or None, template.html_body or None)


def _notes(template: _Template) -> list[str]:
    notes = []
    if not template.alias:
        notes.append(f"it has no alias; {found.plain(template.name)!r} is stored under its id")
    elif template.alias != template.alias.lower():
        notes.append("aliases are in lower case here")
    if template.layout_template:
        notes.append(f"its layout {found.plain(template.layout_template)!r} is merged into it")
    return notes


def _suppression(suppression: _Suppression) -> found.Suppression:
    source = SOURCES.get(suppression.suppression_reason, suppressions.Source.IMPORT)
    reason = f"imported from Postmark: {found.plain(suppression.suppression_reason) or 'unknown'}"
    return found.Suppression(suppression.email_address, source, reason, found.time_of(suppression.created_at))


def _endless(path: str) -> json_api.ApiError:
    return json_api.ApiError(f"{path}: the list does not end")


@click.command("postmark", cls=command.AccountCommand)
@imports.url_option(URL)
@imports.key_option(VARIABLE)
@click.option(
    "--account-key-file",
    type=imports.FILE,
    metavar="FILE",
    help=f"File with the token of the account, which domains need. Default: {ACCOUNT_VARIABLE}.",
)
@imports.DRY_RUN
async def from_postmark(
    context: services_context.Context,
    *,
    account: accounts.Account,
    url: str,
    key_file: TextIO | None,
    account_key_file: TextIO | None,
    dry_run: bool,
) -> output.Report:
    """Import domains, templates, suppressions and webhooks from a server of Postmark into an account.

    What exists is not changed, so it can be repeated. The exit code is 1 if something could not be read.
    """
    key = imports.key(key_file, VARIABLE)
    has_account = account_key_file is not None or bool(os.environ.get(ACCOUNT_VARIABLE))
    async with contextlib.AsyncExitStack() as stack:
        server = await stack.enter_async_context(imports.opened(context, url, {"X-Postmark-Server-Token": key}, key))
        owner = None
        if has_account:
            token = imports.key(account_key_file, ACCOUNT_VARIABLE)
            owner = await stack.enter_async_context(
                imports.opened(context, url, {"X-Postmark-Account-Token": token}, token)
            )
        reader = PostmarkReader(server, owner, today=dt.datetime.now(dt.UTC).date())
        return await imports.run(context, account, reader, dry_run=dry_run)
