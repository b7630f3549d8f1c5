"""The named queries of `sql/*.sql`, and the declarations by which modules offer them as functions.

A declaration is the signature of a function under a decorator that names the query and says what its result is. The
parameters after `tx`, in their order, are the placeholders of the query:

    @queries.row("accounts.by_id", Account)
    async def by_id(tx: store.Transaction, account_id: str) -> Account | None: ...

A file `accounts.sql` holds queries, each introduced by `-- name: by_id` and a line that describes it, and called
`accounts.by_id`. A file `accounts.postgres.sql` overrides single queries for one engine. Placeholders are `$1`, `$2`, …
Text that queries of a file share is introduced by `-- part: filters`; a line `-- include: filters` stands for it.
"""

import functools
import inspect
import re
from collections.abc import Callable, Coroutine, Mapping, Sequence
from importlib import resources
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from postroad.storage.engine import store

P = ParamSpec("P")
T = TypeVar("T")
Query = Callable[Concatenate[store.Transaction, P], Coroutine[Any, Any, T]]

_HEADING = re.compile(r"^-- (name|part): (\w+)\s*$", re.MULTILINE)
_INCLUDE = re.compile(r"^[ ]*-- include: (\w+)[ ]*$", re.MULTILINE)


class Declaration(Protocol[T]):
    """Makes the function of a query out of its signature."""

    def __call__(self, stub: Query[P, T], /) -> Query[P, T]: ...


def load(dialect: str) -> Mapping[str, str]:
    queries: dict[str, str] = {}
    overrides: dict[str, str] = {}
    for file in resources.files("postroad.storage").joinpath("sql").iterdir():
        if not file.name.endswith(".sql"):
            continue
        stem, *rest = file.name.removesuffix(".sql").split(".")
        if rest in ([], [dialect]):
            target = overrides if rest else queries
            target.update(parse(stem, file.read_text(encoding="utf-8")))
    unknown = overrides.keys() - queries.keys()
    if unknown:
        msg = f"override of a query that does not exist: {sorted(unknown)}"
        raise LookupError(msg)
    return queries | overrides


def parse(stem: str, text: str) -> Mapping[str, str]:
    _, *sections = _HEADING.split(text)
    found: dict[str, dict[str, str]] = {"name": {}, "part": {}}
    for kind, name, body in zip(sections[::3], sections[1::3], sections[2::3], strict=True):
        if name in found[kind]:
            msg = f"{stem}: {kind} {name!r} is defined twice"
            raise LookupError(msg)
        if kind == "part" and _INCLUDE.search(body):
            msg = f"{stem}: part {name!r} includes another one"
            raise LookupError(msg)
        found[kind][name] = body.strip("\n")
    return {f"{stem}.{name}": _included(stem, body, found["part"]).strip() for name, body in found["name"].items()}


def _included(stem: str, body: str, parts: Mapping[str, str]) -> str:
    """A query with the text of its includes, which have none themselves."""
    unknown = set(_INCLUDE.findall(body)) - parts.keys()
    if unknown:
        msg = f"{stem}: include of a part that does not exist: {sorted(unknown)}"
        raise LookupError(msg)
    return _INCLUDE.sub(lambda include: parts[include[1]], body)


def row(query: str, make: Callable[..., T]) -> Declaration[T | None]:
    async def run(tx: store.Transaction, arguments: Sequence[object]) -> T | None:
        columns = await tx.fetch_one(query, *arguments)
        return None if columns is None else make(*columns)

    return _declaration(query, run)


def rows(query: str, make: Callable[..., T]) -> Declaration[list[T]]:
    async def run(tx: store.Transaction, arguments: Sequence[object]) -> list[T]:
        return [make(*columns) for columns in await tx.fetch(query, *arguments)]

    return _declaration(query, run)


def count(query: str) -> Declaration[int]:
    """The number in the first row; 0 when there is none."""

    async def run(tx: store.Transaction, arguments: Sequence[object]) -> int:
        columns = await tx.fetch_one(query, *arguments)
        return 0 if columns is None else int(columns[0])

    return _declaration(query, run)


def exists(query: str) -> Declaration[bool]:
    async def run(tx: store.Transaction, arguments: Sequence[object]) -> bool:
        return await tx.fetch_one(query, *arguments) is not None

    return _declaration(query, run)


def change(query: str) -> Declaration[None]:
    """A change, of however many rows."""

    async def run(tx: store.Transaction, arguments: Sequence[object]) -> None:
        await tx.execute(query, *arguments)

    return _declaration(query, run)


def changes(query: str) -> Declaration[int]:
    """A change, and of how many rows."""
    return _declaration(query, lambda tx, arguments: tx.execute(query, *arguments))


def changed(query: str) -> Declaration[bool]:
    """A change; False when there was no row to change."""

    async def run(tx: store.Transaction, arguments: Sequence[object]) -> bool:
        return await tx.execute(query, *arguments) > 0

    return _declaration(query, run)


def _declaration(
    query: str, run: Callable[[store.Transaction, Sequence[object]], Coroutine[Any, Any, T]]
) -> Declaration[T]:
    def declare(stub: Query[P, T]) -> Query[P, T]:
        parameters = list(inspect.signature(stub).parameters.values())[1:]
        names = [parameter.name for parameter in parameters]
        defaults = {parameter.name: parameter.default for parameter in parameters}

        def call(tx: store.Transaction, /, *arguments: P.args, **named: P.kwargs) -> Coroutine[Any, Any, T]:
            if len(arguments) == len(names):
                return run(tx, arguments)
            values = defaults | named
            return run(tx, [*arguments, *(values[name] for name in names[len(arguments) :])])

        functools.update_wrapper(call, stub)
        call.__dict__["query"] = query
        return call

    return declare
