"""Which error of the server means what to a caller. What can be made to happen is in test_postgres.py."""

import asyncpg
import pytest

from postroad import errors
from postroad.storage.engine import postgres_connections
from postroad.storage.engine.store import ConstraintViolated, TransactionAborted


def translate(failure: Exception) -> BaseException:
    with pytest.raises(Exception) as raised, postgres_connections.translated():
        raise failure
    return raised.value


@pytest.mark.parametrize(
    "state, expected",
    [
        ("53100", errors.ServiceUnavailable),  # disk full
        ("53200", errors.ServiceUnavailable),  # out of memory
        ("53300", errors.ServiceUnavailable),  # too many connections
        ("58030", errors.ServiceUnavailable),  # I/O error
        ("57P01", errors.ServiceUnavailable),  # shutting down
        ("57P03", errors.ServiceUnavailable),  # starting up
        ("08006", errors.ServiceUnavailable),  # connection failure
        ("28P01", errors.ServiceUnavailable),  # wrong password
        ("3D000", errors.ServiceUnavailable),  # no such database
        ("25006", errors.ServiceUnavailable),  # read-only: a standby
        ("57014", errors.TemporaryFailure),  # statement timeout
        ("55P03", errors.TemporaryFailure),  # lock not available
        ("40P01", errors.TemporaryFailure),  # dead lock
        ("40001", errors.TemporaryFailure),  # serialisation
        ("25P03", errors.TemporaryFailure),  # idle in transaction
        ("23505", ConstraintViolated),
        ("23514", ConstraintViolated),
        ("25P02", TransactionAborted),
        ("22021", errors.InvalidRequest),  # NUL
        ("42601", asyncpg.PostgresSyntaxError),  # bugs stay bugs
        ("42P01", asyncpg.UndefinedTableError),
        ("22003", asyncpg.NumericValueOutOfRangeError),
    ],
)
def test_each_sqlstate_has_its_meaning(state: str, expected: type[Exception]) -> None:
    failure = asyncpg.PostgresError.new({"C": state, "M": "said the server", "S": "ERROR"})
    translated = translate(failure)
    assert type(translated) is expected
    assert translated is failure or translated.__cause__ is failure


@pytest.mark.parametrize(
    "failure, expected",
    [
        (ConnectionRefusedError(), errors.ServiceUnavailable),
        (OSError(), errors.ServiceUnavailable),
        (asyncpg.InterfaceError("pool is closing"), errors.ServiceUnavailable),
        (asyncpg.InternalClientError("lost track"), errors.ServiceUnavailable),
        (TimeoutError(), errors.TemporaryFailure),
        (asyncpg.OutdatedSchemaCacheError("migrated"), errors.TemporaryFailure),
        (KeyError("no such query"), KeyError),
        (asyncpg.ClientConfigurationError("a mistake in the URL"), asyncpg.ClientConfigurationError),
    ],
)
def test_each_failure_on_the_way_has_its_meaning(failure: Exception, expected: type[Exception]) -> None:
    assert type(translate(failure)) is expected


def test_what_callers_see_reveals_nothing_internal() -> None:
    failure = asyncpg.PostgresError.new({"C": "28P01", "M": "password of user secret at 10.0.0.7", "S": "FATAL"})
    assert "10.0.0.7" not in str(translate(failure))
