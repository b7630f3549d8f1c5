"""Connections to PostgreSQL: to the primary of several servers, and through PgBouncer.

A URL may name several servers, separated by commas, of which one is the primary: after a failover another one. All are
tried at once and the one that accepts writes is taken, so a server that is silent delays nothing; one after the other,
it would use up the time of all.

PgBouncer in transaction mode lends a session of the server for one transaction. Prepared statements outlive one, so
they are used only if PgBouncer tracks them (`max_prepared_statements`, from version 1.21). LISTEN needs a session that
lasts, so there is none.
"""

import asyncio
import contextlib
import secrets
from collections.abc import Iterator, Sequence
from typing import Any, Final
from urllib import parse

import asyncpg

from postroad import errors
from postroad.storage.engine import store

CONNECT_SECONDS: Final = 5
# The server caches the plan of a frequent statement, made for the table as it is then. A plan made for an empty queue
# reads the whole table, and would still do so with a million rows. All short statements find their rows by key, so one
# plan suits all arguments; by default, statements with arrays are planned each time, which takes as long as they do.
PLANS_BY_KEY: Final = {
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "plan_cache_mode": "force_generic_plan",
}
_SET_PLANS: Final = "; ".join(f"SET {name} = {value}" for name, value in PLANS_BY_KEY.items())


class Connection(asyncpg.Connection):  # type: ignore[misc]  # untyped library
    """A connection; `plans_by_key` when its session lasts and has these settings, also without a transaction."""

    plans_by_key = False


async def connect(url: str, **options: Any) -> Any:  # noqa: ANN401 - untyped library
    """A connection to the server that accepts writes; `options` are those of asyncpg."""
    connection = await _connect_to_primary(url, options)
    try:
        if not await is_pooled(connection):
            await connection.execute(_SET_PLANS, timeout=CONNECT_SECONDS)
            connection.plans_by_key = True
            return connection
        keeps_statements = await _tracks_statements(connection)
    except BaseException:
        connection.terminate()
        raise
    if keeps_statements:
        return connection
    connection.terminate()
    return await _connect_to_primary(url, {**options, "statement_cache_size": 0})


async def is_pooled(connection: Any) -> bool:  # noqa: ANN401 - untyped library
    """Whether a pooler is between: the process that answers is not the one that was announced."""
    announced = connection.get_server_pid()
    status = await connection.execute(f"SELECT WHERE pg_backend_pid() = {announced}", timeout=CONNECT_SECONDS)
    return bool(status != "SELECT 1")


async def _tracks_statements(connection: Any) -> bool:  # noqa: ANN401 - untyped library
    """Whether the pooler gives prepared statements names of its own, which is how it finds them again."""
    name = f"postroad_{secrets.token_hex(8)}"
    async with connection.transaction():
        statement = await connection.prepare(
            "SELECT EXISTS (SELECT FROM pg_prepared_statements WHERE name = $1)", name=name, timeout=CONNECT_SECONDS
        )
        keeps_name = await statement.fetchval(name, timeout=CONNECT_SECONDS)
        if keeps_name:
            await connection.execute(f"DEALLOCATE {name}", timeout=CONNECT_SECONDS)
    return not keeps_name


async def _connect_to_primary(url: str, options: dict[str, Any]) -> Any:  # noqa: ANN401 - untyped library
    urls = server_urls(url)
    options = {"connection_class": Connection, **options}
    if len(urls) == 1:
        return await asyncpg.connect(url, **options)
    options = {**options, "target_session_attrs": "read-write"}
    attempts = [asyncio.create_task(asyncpg.connect(url, **options)) for url in urls]
    chosen: asyncio.Task[Any] | None = None
    waiting = set(attempts)
    try:
        while waiting and chosen is None:
            done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            chosen = next((attempt for attempt in done if attempt.exception() is None), None)
        return (chosen or attempts[0]).result()  # or what is wrong with the first server
    finally:
        await _end([attempt for attempt in attempts if attempt is not chosen])


async def _end(attempts: Sequence[asyncio.Task[Any]]) -> None:
    """End attempts to connect, and the connections of those that succeeded too."""
    for attempt in attempts:
        attempt.cancel()
    await asyncio.gather(*attempts, return_exceptions=True)
    for attempt in attempts:
        if not attempt.cancelled() and attempt.exception() is None:
            attempt.result().terminate()


def server_urls(url: str) -> list[str]:
    """A URL for each server that is named, with everything else as it is."""
    named = parse.urlsplit(url).netloc
    user, at, hosts = named.rpartition("@")
    return [url.replace(f"//{named}", f"//{user}{at}{host}", 1) for host in hosts.split(",")]


# Maps errors of PostgreSQL and asyncpg to those of Postroad, by SQLSTATE class (PostgreSQL documentation, appendix A).
#
# A bug, such as wrong SQL or a value of the wrong type, is not mapped.

FULL = (asyncpg.DiskFullError,)
UNSTORABLE = (asyncpg.CharacterNotInRepertoireError, asyncpg.UntranslatableCharacterError)
BUSY = (
    asyncpg.TransactionRollbackError,  # class 40: deadlocks, serialization
    asyncpg.LockNotAvailableError,
    asyncpg.QueryCanceledError,  # statement_timeout
    asyncpg.IdleInTransactionSessionTimeoutError,
    asyncpg.InvalidCachedStatementError,  # another host has migrated the schema: the next call plans again
    asyncpg.OutdatedSchemaCacheError,
    TimeoutError,
)
UNREACHABLE = (
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,  # shutting down, starting up, terminated by an administrator
    asyncpg.InsufficientResourcesError,
    asyncpg.PostgresSystemError,
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidCatalogNameError,
    asyncpg.ReadOnlySQLTransactionError,  # a standby, after a failover
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    OSError,
)


@contextlib.contextmanager
def translated() -> Iterator[None]:
    """Maps errors of the server and the network. For single calls, never around a caller's block."""
    try:
        yield
    except (asyncpg.IntegrityConstraintViolationError, asyncpg.InsufficientPrivilegeError) as cause:
        is_forbidden = isinstance(cause, asyncpg.InsufficientPrivilegeError)
        raise (store.NotPermitted if is_forbidden else store.ConstraintViolated)(str(cause)) from cause
    except asyncpg.InFailedSQLTransactionError as cause:
        raise store.TransactionAborted from cause
    except asyncpg.DataError as cause:
        # The server refuses NUL; an unpaired surrogate cannot even be encoded.
        if not isinstance(cause, UNSTORABLE) and not isinstance(cause.__cause__, UnicodeEncodeError):
            raise
        raise _unstorable() from cause
    except UnicodeEncodeError as cause:  # the same, raised by COPY
        raise _unstorable() from cause
    except asyncpg.ClientConfigurationError:  # a mistake in the URL; a subclass of InterfaceError
        raise
    except FULL as cause:
        msg = "the disk of the database is full; nothing was accepted"
        raise errors.ServiceUnavailable(msg, retry_after=30) from cause
    except BUSY as cause:
        msg = "the database is busy; nothing was accepted, try again"
        raise errors.TemporaryFailure(msg, retry_after=1) from cause
    except UNREACHABLE as cause:
        raise unreachable() from cause


def unreachable() -> errors.ServiceUnavailable:
    return errors.ServiceUnavailable("the database cannot be reached; nothing was accepted", retry_after=5)


def _unstorable() -> errors.InvalidRequest:
    return errors.InvalidRequest("a text contains a NUL character or an unpaired surrogate, which cannot be stored")
