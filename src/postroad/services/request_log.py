"""Requests of an account that are visible nowhere else: those that were refused or failed, and changes by its keys.

An accepted message is a row of the message log and writes nothing here. A request is noted in memory; a background task
writes the collected ones of all accounts in one transaction, so that a flood of refused requests commits once a second.
What is lost with a crash is the last second. Everything is bounded: what waits, of an account and in all, and what is
kept of an account. Those that find no room are counted in the row of the one before.

A body is kept if it is JSON, without what looks like a secret, and is shown only to those who may see content.
"""

import asyncio
import collections
import contextlib
import re
from collections.abc import Mapping
from typing import Any, Final, Literal
from urllib import parse

import msgspec

from postroad import context, errors
from postroad.model.people import callers
from postroad.model.units import identifiers
from postroad.protocol.mime import address
from postroad.protocol.text import strict_json
from postroad.storage.engine import store
from postroad.storage.people import request_log
from postroad.telemetry import logs

LOG_DAYS: Final = 7
# Of an account. The bodies are the largest part of it.
MAX_ROWS: Final = 1_000
MAX_OCTETS: Final = 1024 * 1024
# Collects the requests of a flood into one transaction.
FLUSH_DELAY_SECONDS: Final = 1.0
# Of an account between two flushes, and of all accounts: 10 MB with the longest bodies.
MAX_WAITING: Final = 50
MAX_WAITING_IN_ALL: Final = 2_000
# One short transaction.
MAX_BATCH_ROWS: Final = 250

MAX_SHOWN_OCTETS: Final = 4 * 1024
# With its line break and indentation, each takes at least five octets of those.
MAX_SHOWN_VALUES: Final = 1_000
# Of a text in a body, so that an attachment does not hide what follows it.
MAX_TEXT_CHARACTERS: Final = 500
MAX_ERROR_CHARACTERS: Final = 500
MAX_PATH_CHARACTERS: Final = 200
# No body sent here is kept: a secret may be in a member whose name is misspelt.
_SECRET_PATHS: Final = (b"/v1/auth/", b"/v1/sso")
# Names of members whose values are not kept.
_SECRET_NAME: Final = re.compile(
    r"pass(word|phrase|wd|code)|pwd|secret|token|authorization|cookie|credential|private|apikey"
    r"|(^|[_-]|(?-i:[a-z](?=[A-Z])))(key|code|pin|otp)$",
    re.IGNORECASE,
)
_UNSEEN: Final = re.compile(f"[{address.UNSEEN}\ud800-\udfff]")
_encoder: Final = msgspec.json.Encoder()

CallerKind = Literal["person", "api_key", "credential"]
Status = Literal["succeeded", "refused", "failed"]
# The HTTP statuses of each: from one to below another.
STATUSES: Final[Mapping[Status, tuple[int, int]]] = {"succeeded": (0, 400), "refused": (400, 500), "failed": (500, 600)}
_KINDS: Final[Mapping[str, CallerKind]] = {identifiers.API_KEY: "api_key", identifiers.CREDENTIAL: "credential"}


def days(ctx: context.Context) -> int:
    """How long a request is kept: its body may be that of a message, which is not kept for longer."""
    return min(LOG_DAYS, ctx.settings.retention.body_days)


class RequestLog:
    """Notes requests, and writes them later. A request that the database refuses is dropped."""

    def __init__(self, database: store.Store) -> None:
        self._database = database
        self._waiting: dict[str, collections.deque[request_log.Entry]] = {}
        self._count = 0
        self._writer: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()

    def note(self, request: callers.FinishedRequest) -> None:
        entries = self._waiting.get(request.caller.account_id)
        if entries is None and self._count < MAX_WAITING_IN_ALL:
            entries = self._waiting[request.caller.account_id] = collections.deque()
        if entries is None:
            return
        if len(entries) >= MAX_WAITING or self._count >= MAX_WAITING_IN_ALL:
            entries[-1] = msgspec.structs.replace(entries[-1], skipped=entries[-1].skipped + 1)
            return
        entries.append(_entry(request))
        self._count += 1
        if self._writer is None:
            self._writer = asyncio.get_running_loop().create_task(self._write_later())
            self._writer.add_done_callback(self._end_writer)

    async def flush(self) -> None:
        """Write the collected requests."""
        while self._waiting:
            batch: list[request_log.Entry] = []
            while self._waiting and len(batch) < MAX_BATCH_ROWS:
                _, entries = self._waiting.popitem()
                batch += entries
            self._count -= len(batch)
            with contextlib.suppress(errors.PostroadError):
                async with self._database.transaction() as tx:
                    await request_log.insert(tx, batch, rows=MAX_ROWS, octets=MAX_OCTETS)

    async def close(self) -> None:
        self._closing.set()
        if self._writer is not None:
            await asyncio.wait([self._writer])

    async def _write_later(self) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._closing.wait(), FLUSH_DELAY_SECONDS)
        await self.flush()

    def _end_writer(self, _writer: asyncio.Task[None]) -> None:
        self._writer = None


def _entry(request: callers.FinishedRequest) -> request_log.Entry:
    who = request.caller
    return request_log.Entry(
        account_id=who.account_id,
        id=request.id,
        caller_id=(who.key.id if who.key is not None else who.user_id or who.credential_id) or "",
        method=request.method,
        path=_one_line(request.path.decode("latin-1"), MAX_PATH_CHARACTERS),
        status=request.status,
        code=request.code,
        error=_one_line(request.error, MAX_ERROR_CHARACTERS),
        client_address=request.client_address,
        body_size=request.body_size,
        # As routes are found: with what is percent-encoded decoded.
        body=b"" if parse.unquote_to_bytes(request.path).startswith(_SECRET_PATHS) else shown_body(request.body),
        skipped=0,
        created_at=identifiers.time_of(request.id, identifiers.REQUEST),
    )


def _one_line(text: str, characters: int) -> str:
    return logs.redact(_UNSEEN.sub(" ", text))[:characters]


def shown_body(raw: bytes) -> bytes:
    """What is kept of a body: the beginning of JSON, with secrets masked and long texts cut."""
    try:
        document = strict_json.read(raw)
    except strict_json.JsonError:
        return b""
    whole = msgspec.json.format(_encoder.encode(_Mask().value(document)), indent=2)
    return (
        whole
        if len(whole) <= MAX_SHOWN_OCTETS
        else whole[:MAX_SHOWN_OCTETS].decode(errors="ignore").encode() + "…".encode()
    )


class _Mask:
    """Masks the values of a body, as many as can be shown: one of 64 KiB can have thirty times as many."""

    def __init__(self) -> None:
        self._left = MAX_SHOWN_VALUES

    def value(self, value: Any) -> Any:  # noqa: ANN401 - any JSON value
        self._left -= 1
        match value:
            case str():
                text = logs.redact(value)
                return text if len(text) <= MAX_TEXT_CHARACTERS else f"{text[:MAX_TEXT_CHARACTERS]}…"
            case list():
                return [self.value(item) for item in value if self._left > 0]
            case dict():
                return {logs.redact(name): self._member(name, item) for name, item in value.items() if self._left > 0}
        return value

    def _member(self, name: str, value: Any) -> Any:  # noqa: ANN401 - any JSON value
        return logs.REDACTED if value is not None and _SECRET_NAME.search(name) else self.value(value)


class Filters(msgspec.Struct, frozen=True, kw_only=True):
    """What to look for; None and empty let everything pass."""

    status: Status | None = None
    caller_id: str = ""
    since: int | None = None
    until: int | None = None


async def page(
    ctx: context.Context, account_id: str, filters: Filters, *, before: str | None, limit: int
) -> identifiers.Page[request_log.NamedEntry]:
    """A page of the requests that match, newest first."""
    place = identifiers.before(before, identifiers.REQUEST)
    if filters.until is not None:
        place = min(place, identifiers.at(identifiers.REQUEST, filters.until))
    status, below = (0, 600) if filters.status is None else STATUSES[filters.status]
    # What this process has noted belongs to the page.
    await ctx.request_log.flush()
    async with ctx.store.scanning(account_id) as tx:
        found = await request_log.page(
            tx,
            account_id,
            before=place,
            after=identifiers.at(identifiers.REQUEST, filters.since or 0),
            status=status,
            below=below,
            caller_id=filters.caller_id.replace("\0", ""),
            limit=limit + 1,
        )
    return identifiers.page(found, limit=limit)


async def find(ctx: context.Context, account_id: str, request_id: str) -> request_log.NamedEntry:
    found = None
    if identifiers.is_identifier(request_id, identifiers.REQUEST):
        await ctx.request_log.flush()
        async with ctx.store.reading() as tx:
            found = await request_log.by_id(tx, account_id, request_id)
    if found is None:
        raise errors.NotFound(f"no such request in the log of the last {days(ctx)} days")
    return found


async def callers_of(ctx: context.Context, account_id: str) -> list[tuple[str, str]]:
    """The ids and names of those whose requests are listed."""
    async with ctx.store.scanning(account_id) as tx:
        return await request_log.callers_of(tx, account_id)


def status_of(entry: request_log.Entry) -> Status:
    return next(status for status, (least, below) in STATUSES.items() if least <= entry.status < below)


def kind_of(entry: request_log.Entry) -> CallerKind:
    """The kind of the caller, which the prefix of its id tells."""
    return next((kind for prefix, kind in _KINDS.items() if entry.caller_id.startswith(prefix)), "person")


def sees_body(who: callers.Caller) -> bool:
    """Whether bodies are shown: to people who may see content, and to keys that may read messages too."""
    return who.sees_content and (who.key is None or callers.Scope.READ in who.key.scopes)
