"""Changes whose results nobody needs, collected and sent to PostgreSQL as one statement instead of a round trip each.

asyncpg has no pipelining, so changes become parts of one `WITH` statement. Its parts do not see each other's changes,
and their order is not defined. So only changes that have no table in common go together, and a statement that has one
in common with them is sent after them.
"""

import functools
import re
from collections.abc import Sequence
from typing import Any, Final

# A table follows one of these words. The UPDATE of FOR UPDATE and DO UPDATE has none, and a function is none.
_TABLE: Final = re.compile(r"\b(?:FROM|JOIN|INTO|USING|(?<!FOR )(?<!DO )UPDATE)\s+(\w+)\b(?!\()")
_COMMENT: Final = re.compile(r"--.*")
_PLACEHOLDER: Final = re.compile(r"\$(\d+)")


@functools.lru_cache(maxsize=1_000)
def tables_of(statement: str) -> frozenset[str]:
    """The tables that a statement names, and the names that it gives to its own parts."""
    return frozenset(_TABLE.findall(_COMMENT.sub("", statement)))


@functools.lru_cache(maxsize=1_000)
def combine(statements: tuple[str, ...]) -> str:
    """One statement that makes all these changes; its arguments are theirs, in order."""
    if len(statements) == 1:
        return statements[0]
    parts, shift = [], 0
    for number, statement in enumerate(statements, start=1):
        parts.append(f"change_{number} AS (\n{_shifted(statement, shift).rstrip(';')}\n)")
        shift += max(map(int, _PLACEHOLDER.findall(statement)))
    return f"WITH {', '.join(parts)} SELECT"


def _shifted(statement: str, shift: int) -> str:
    return _PLACEHOLDER.sub(lambda place: f"${int(place[1]) + shift}", statement)


class PendingWrites:
    """The changes of a transaction that are not sent yet."""

    def __init__(self) -> None:
        self._statements: list[str] = []
        self._arguments: list[Sequence[Any]] = []
        self._tables: set[str] = set()

    def concern(self, tables: frozenset[str]) -> bool:
        """Whether they have to be sent before a statement about these tables."""
        return not self._tables.isdisjoint(tables)

    def add(self, statement: str, arguments: Sequence[Sequence[Any]]) -> None:
        """Add a change whose tables they do not concern."""
        self._statements.append(statement)
        self._arguments += arguments
        self._tables |= tables_of(statement)

    def take(self) -> tuple[str, Sequence[Sequence[Any]]] | None:
        """All of them as one statement, and its arguments; None when there are none."""
        if not self._statements:
            return None
        statements, arguments = tuple(self._statements), self._arguments
        self._statements, self._arguments, self._tables = [], [], set()
        return combine(statements), arguments
