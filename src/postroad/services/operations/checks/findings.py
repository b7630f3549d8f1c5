"""What the checks look at, and the result of one: a state, what was found, and what to do about it."""

import asyncio
import contextlib
import ipaddress
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import msgspec

from postroad import config, context, errors
from postroad.model.delivery import providers
from postroad.model.units import times
from postroad.network import hostname
from postroad.network.dns import resolver
from postroad.storage.engine import migrations, open_store
from postroad.storage.engine import store as storage
from postroad.storage.operations import processes
from postroad.telemetry import logs


class State(StrEnum):
    """From best to worst; `skipped` does not apply to this installation or cannot be known now."""

    OK = "ok"
    SKIPPED = "skipped"
    WARNING = "warning"
    ERROR = "error"


class Finding(msgspec.Struct, frozen=True):
    """What one check found. `advice` is empty where nothing is to be done, or where `found` says it.

    `listed` is the source address that a blocklist names, and the blocklist.
    """

    state: State
    found: str
    advice: str = ""
    listed: tuple[str, str] | None = None


def ok(found: str) -> Finding:
    """Nothing to do."""
    return Finding(State.OK, found)


def skipped(reason: str) -> Finding:
    """Not checked."""
    return Finding(State.SKIPPED, reason)


def warning(found: str, advice: str = "") -> Finding:
    """It works, and should be changed."""
    return Finding(State.WARNING, found, advice)


def error(found: str, advice: str = "") -> Finding:
    """Mail is refused, lost or not sent, or soon will be."""
    return Finding(State.ERROR, found, advice)


# Shorter than the time of a check, so that a silent name server is reported as such.
QUERY_SECONDS: Final = 4.0
TRY_SECONDS: Final = 1.5
# The system may query DNS for its own name.
NAME_SECONDS: Final = 5.0
# Processes report themselves twice a minute (roles/background.py): three missed reports.
ALIVE: Final = 90 * times.SECOND
# Networks behind a translating router (RFC 1918, RFC 6598, RFC 4193), whose public address is another one.
_TRANSLATED: Final = tuple(
    ipaddress.ip_network(text)
    for text in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """An installation as seen from this host. `store` is None if the database cannot be used; `database` says why."""

    settings: config.Settings
    # The name in EHLO, and the name that the system gives itself.
    hostname: str
    short_name: str
    dns: resolver.Resolver
    clock: Callable[[], int]
    store: storage.Store | None
    database: Finding
    # The processes of all hosts that run now.
    running: Sequence[processes.Process]

    @property
    def is_direct(self) -> bool:
        """Whether some mail is sent directly to the mail servers of its recipients, and not all through upstreams."""
        rules = providers.complete_routes(
            self.settings.routes, names=[upstream.name for upstream in self.settings.upstreams]
        )
        return any(providers.DIRECT in rule.upstreams for rule in rules)

    @property
    def here(self) -> Sequence[processes.Process]:
        return [process for process in self.running if process.host == self.short_name]

    def runs_here(self, role: str) -> bool:
        """Whether this host runs a role, as far as is known."""
        return self.store is None or any(role in process.roles for process in self.here)

    @property
    def public_sources(self) -> Sequence[config.Source]:
        """The source addresses that destinations see."""
        return [
            source
            for source in self.settings.sources
            if not any(ipaddress.ip_address(source.address) in network for network in _TRANSLATED)
        ]


async def of_context(ctx: context.Context) -> Subject:
    return await _examine(ctx.settings, ctx.store, ctx.clock)


@contextlib.asynccontextmanager
async def opened(settings: config.Settings) -> AsyncIterator[Subject]:
    """The installation behind these settings, whatever its state; nothing is created or migrated."""
    url = settings.database.url
    try:
        if url.startswith("sqlite:"):
            await asyncio.to_thread(open_store.sqlite_path(url).absolute().stat)  # opening would create it
        store = await open_store.open_store(url, connections=2)
    except Exception as trouble:  # noqa: BLE001 - whatever it is, it is what the operator has to know
        yield await _examine(settings, _describe(trouble), context.system_clock)
        return
    try:
        yield await _examine(settings, store, context.system_clock)
    finally:
        await store.close()


async def _examine(settings: config.Settings, store: storage.Store | str, clock: Callable[[], int]) -> Subject:
    database, running = await _database(store, now=clock())
    return Subject(
        settings=settings,
        hostname=settings.delivery.hostname or await _system_name(),
        short_name=hostname.short_name(),
        dns=resolver.Resolver(settings.delivery.resolvers, try_seconds=TRY_SECONDS, query_seconds=QUERY_SECONDS),
        clock=clock,
        store=None if isinstance(store, str) or running is None else store,
        database=database,
        running=running or (),
    )


async def _database(store: storage.Store | str, *, now: int) -> tuple[Finding, Sequence[processes.Process] | None]:
    """The state of the database, and the processes that it knows; None if it cannot be used."""
    if isinstance(store, str):
        return _unavailable(store), None
    try:
        await migrations.require_current(store)
        async with store.reading() as tx:
            running = await processes.seen_since(tx, now - ALIVE)
    except migrations.SchemaError as problem:
        return error(str(problem)), None
    except errors.PostroadError as problem:
        return _unavailable(_describe(problem)), None
    return ok("the database is reachable, and its schema matches this version"), running


def _unavailable(reason: str) -> Finding:
    return error(
        f"the database cannot be used: {reason}",
        "check database.url, that the database runs, and that this user may read and write it; "
        "'postroad serve' or 'postroad migrate' creates a new one",
    )


def _describe(problem: BaseException) -> str:
    """The text of an error and of its cause, without passwords."""
    if isinstance(problem, OSError) and problem.filename:
        return f"{problem.filename}: {problem.strerror}"
    message = problem.message if isinstance(problem, errors.PostroadError) else str(problem)
    return logs.redact(f"{message} ({problem.__cause__})" if problem.__cause__ else message)


async def _system_name() -> str:
    try:
        async with asyncio.timeout(NAME_SECONDS):
            return await hostname.name()
    except TimeoutError:
        return hostname.short_name()
