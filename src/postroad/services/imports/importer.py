"""Creates in an account what a reader finds at another service, and reports on each object.

What exists already is left as it is, so an import that was interrupted is continued by running it again. A dry run
reads and compares the same, and writes nothing. A refusal of one object or kind, ours or theirs, does not stop the
others; an outage of the service does.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib import parse

import msgspec

from postroad import context, errors
from postroad.mail.accept import validation
from postroad.network.http import json_api
from postroad.protocol.mime import address
from postroad.services import usage_limits
from postroad.services.domains import domain_registry as domains
from postroad.services.imports import found
from postroad.services.suppressions import suppression_list
from postroad.services.templates import templates
from postroad.services.webhooks import endpoint_settings, endpoints, signed_requests
from postroad.storage.mail import suppressions as stored

# Services return a hundred at a time; a transaction takes some of these.
SUPPRESSION_ROWS: Final = 1_000
# Enough to see what is wrong; all are counted.
SHOWN_REFUSALS: Final = 20
_AUTHORITY: Final = re.compile(r"[/?#\\]")
_DISABLED: Final = "disabled; if your application verifies signatures, store the secret there, then enable the webhook"


@dataclass(frozen=True, slots=True)
class Item:
    """An object, with what the reader should know about it. The secret is that of a new endpoint."""

    name: str
    notes: Sequence[str] = ()
    secret: str | None = field(default=None, repr=False)


class Section(msgspec.Struct):
    """What became of one kind of objects. `stopped` says why not all of them were read."""

    created: list[Item] = msgspec.field(default_factory=list)
    existing: list[Item] = msgspec.field(default_factory=list)
    refused: list[Item] = msgspec.field(default_factory=list)
    stopped: str = ""


class SuppressionSection(msgspec.Struct):
    """The same for suppressed addresses, which are counted; the first refused ones are named."""

    created: int = 0
    existing: int = 0
    refused: int = 0
    refusals: list[Item] = msgspec.field(default_factory=list)
    stopped: str = ""


class Report(msgspec.Struct):
    """The result of an import."""

    domains: Section = msgspec.field(default_factory=Section)
    templates: Section = msgspec.field(default_factory=Section)
    suppressions: SuppressionSection = msgspec.field(default_factory=SuppressionSection)
    webhooks: Section = msgspec.field(default_factory=Section)

    @property
    def sections(self) -> dict[str, Section | SuppressionSection]:
        """By the name of what they count, in the order in which they are imported."""
        return {name: getattr(self, name) for name in ("domains", "templates", "suppressions", "webhooks")}

    @property
    def is_complete(self) -> bool:
        """Whether everything was read."""
        return not any(section.stopped for section in self.sections.values())


class Importer:
    """One import into an account."""

    def __init__(self, ctx: context.Context, account_id: str, reader: found.Reader, *, dry_run: bool) -> None:
        self._ctx = ctx
        self._account_id = account_id
        self._reader = reader
        self._dry_run = dry_run
        self._report = Report()

    async def run(self) -> Report:
        """Import everything that can be read."""
        steps: dict[str, Callable[[], Awaitable[None]]] = {
            "domains": self._domains,
            "templates": self._templates,
            "suppressions": self._suppressions,
            "webhooks": self._webhooks,
        }
        stopped = ""
        for name, step in steps.items():
            if stopped:
                self._report.sections[name].stopped = stopped
                continue
            try:
                await step()
            except json_api.Unavailable as problem:
                self._report.sections[name].stopped = str(problem)
                stopped = f"not read, because {name} could not be read"
            except json_api.ApiError as problem:
                self._report.sections[name].stopped = str(problem)
        return self._report

    async def _domains(self) -> None:
        section = self._report.domains
        async for name in self._reader.domains():
            with _Refusals(section, name):
                if await self._has_domain(name):
                    section.existing.append(Item(address.parse_domain(name)))
                    continue
                if not self._dry_run:
                    await domains.add(self._ctx, self._account_id, name, verified=False)
                elif await domains.verified_owner(self._ctx, name) is not None:
                    raise errors.Conflict("the domain is verified by another account")
                section.created.append(Item(address.parse_domain(name)))

    async def _has_domain(self, name: str) -> bool:
        try:
            await domains.by_name(self._ctx, self._account_id, name)
        except errors.NotFound:
            return False
        return True

    async def _templates(self) -> None:
        section = self._report.templates
        async for template in self._reader.templates():
            if isinstance(template, found.Unusable):
                section.refused.append(Item(template.name, (template.reason,)))
                continue
            with _Refusals(section, template.alias):
                validation.check_alias("alias", template.alias)
                new = template.bodies
                templates.check(subject=new.subject, text=new.text, html=new.html)
                try:
                    old = await templates.find(self._ctx, self._account_id, template.alias)
                except errors.NotFound:
                    if not self._dry_run:
                        await templates.put(
                            self._ctx,
                            self._account_id,
                            template.alias,
                            subject=new.subject,
                            text=new.text,
                            html=new.html,
                        )
                    section.created.append(Item(template.alias, template.notes))
                else:
                    is_same = (old.subject, old.text, old.html) == (new.subject, new.text, new.html)
                    section.existing.append(
                        Item(template.alias, () if is_same else ("the template here differs and was not changed",))
                    )

    async def _suppressions(self) -> None:
        async for rows in _gathered(self._reader.suppressions()):
            await usage_limits.check_suppression_quota(self._ctx, self._account_id)
            await self._add(rows)
            await asyncio.sleep(0)

    async def _add(self, rows: Sequence[found.Suppression]) -> None:
        section, now = self._report.suppressions, self._ctx.clock()
        wanted: dict[str, stored.Suppression] = {}
        for row in rows:
            try:
                key = address.parse(row.email).key
            except address.AddressError as problem:
                section.refused += 1
                if len(section.refusals) < SHOWN_REFUSALS:
                    section.refusals.append(Item(found.plain(row.email), (str(problem),)))
                continue
            since = now if row.created_at is None else min(row.created_at, now)
            wanted.setdefault(key, stored.Suppression(self._account_id, key, row.source, row.reason, None, None, since))
        if self._dry_run:
            async with self._ctx.store.reading() as tx:
                added = len(wanted) - len(await stored.find(tx, [(self._account_id, key) for key in wanted]))
        else:
            is_first = not section.created
            subject = f"addresses of {self._reader.name}" if is_first else None
            added = await self._write([wanted[key] for key in sorted(wanted)], subject)
        section.created += added
        section.existing += len(wanted) - added

    async def _write(self, rows: Sequence[stored.Suppression], subject: str | None) -> int:
        """Write only what is new: running an import again writes nothing, in the audit log neither."""
        async with self._ctx.store.reading() as tx:
            known = await stored.find(tx, [(row.account_id, row.email_key) for row in rows])
        new = [row for row in rows if (row.account_id, row.email_key) not in known]
        return await suppression_list.add_in_batches(self._ctx, new, audit_subject=subject)

    async def _webhooks(self) -> None:
        section = self._report.webhooks
        urls = {webhook.url for webhook in await endpoints.of_account(self._ctx, self._account_id)}
        async for webhook in self._reader.webhooks():
            given, headers = _without_credentials(webhook)
            shown = given.partition("?")[0]
            with _Refusals(section, shown):
                # Not enabled, so the host is not looked up.
                url = await self._ctx.webhook_client.check(given, is_enabled=False)
                if url in urls:
                    section.existing.append(Item(shown))
                    continue
                known, missing = self._events(webhook)
                urls.add(url)
                saved = None if self._dry_run else await self._create(url, known, headers)
                notes = [_DISABLED, *([f"events that do not exist here: {', '.join(missing)}"] if missing else [])]
                section.created.append(Item(shown, notes, saved.secret if saved else None))

    def _events(self, webhook: found.Webhook) -> tuple[list[str], list[str]]:
        """The events of an endpoint that exist here, and those that do not."""
        sources = self._reader.format.sources
        known = [name for name in webhook.events if name in sources]
        if not known:
            wanted = ", ".join(found.plain(name) for name in webhook.events) or "none"
            raise errors.InvalidRequest(f"none of its events exist here: {wanted}")
        return known, [found.plain(name) for name in webhook.events if name not in sources]

    async def _create(
        self, url: str, events: Sequence[str], headers: signed_requests.HeaderFields
    ) -> endpoints.SavedEndpoint:
        """Disabled, so that an application does not get events of both before it is ready."""
        changes = endpoint_settings.Changes(
            url=url,
            format_events=events,
            enabled=False,
            description=f"Imported from {self._reader.name}",
            request_headers=headers or None,
        )
        return await endpoints.create(self._ctx, self._account_id, changes, of_format=self._reader.format.name)


class _Refusals:
    """Reports an object that this service refuses, and goes on with the next. An outage of ours is none."""

    def __init__(self, section: Section, name: str) -> None:
        self._section = section
        self._name = name

    def __enter__(self) -> None:
        """Nothing to do."""

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, trace: object) -> bool:
        """Whether the error is reported."""
        del kind, trace
        if isinstance(problem, errors.ServiceUnavailable):
            return False
        if isinstance(problem, (errors.PostroadError, address.AddressError)):
            reason = problem.message if isinstance(problem, errors.PostroadError) else str(problem)
            self._section.refused.append(Item(found.plain(self._name), (reason,)))
            return True
        return False


def _without_credentials(webhook: found.Webhook) -> tuple[str, signed_requests.HeaderFields]:
    """The URL without a username and password, which become a header field: our URLs have none, and reports show them.

    The query is not shown either, because it may be a secret.
    """
    scheme, _, rest = webhook.url.partition("://")
    # An `@` after the host is none of these (RFC 3986 section 3.2); what follows must not become the host.
    authority = _AUTHORITY.split(rest, maxsplit=1)[0]
    credentials, at, host = authority.rpartition("@")
    if not at:
        return webhook.url, webhook.headers
    username, _, password = map(parse.unquote, credentials.partition(":"))
    return f"{scheme}://{host}{rest[len(authority) :]}", (
        *webhook.headers,
        signed_requests.basic_authentication(username, password),
    )


async def _gathered(pages: AsyncIterator[Sequence[found.Suppression]]) -> AsyncIterator[list[found.Suppression]]:
    """Rows in groups that are worth a transaction: small pages together, a large one in parts.

    What was read before an error is handed out before the error is raised.
    """
    rows: list[found.Suppression] = []
    problem: json_api.ApiError | None = None
    try:
        async for page in pages:
            rows += page
            while len(rows) >= SUPPRESSION_ROWS:
                yield rows[:SUPPRESSION_ROWS]
                del rows[:SUPPRESSION_ROWS]
    except json_api.ApiError as raised:
        problem = raised
    if rows:
        yield rows
    if problem is not None:
        raise problem
