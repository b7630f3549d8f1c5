"""Maps errors of PostgreSQL and asyncpg to those of Postroad, by SQLSTATE class (PostgreSQL documentation, appendix A).

A bug, such as wrong SQL or a value of the wrong type, is not mapped.
"""

import contextlib
from collections.abc import Iterator

import asyncpg

from postroad import errors
from postroad.storage import store

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
    """The error of a server without a connection to it."""
    return errors.ServiceUnavailable("the database cannot be reached; nothing was accepted", retry_after=5)


def _unstorable() -> errors.InvalidRequest:
    return errors.InvalidRequest("a text contains a NUL character or an unpaired surrogate, which cannot be stored")
