"""Reads the named queries of `sql/*.sql`.

A file `accounts.sql` holds queries, each introduced by `-- name: by_id` and a line that describes it, and called
`accounts.by_id`. A file `accounts.postgres.sql` overrides single queries for one engine. Placeholders are `$1`, `$2`, …
"""

import re
from collections.abc import Mapping
from importlib import resources

_NAME = re.compile(r"^-- name: (\w+)\s*$", re.MULTILINE)


def load(dialect: str) -> Mapping[str, str]:
    """All queries for an engine (`sqlite` or `postgres`), by `file.query`."""
    queries: dict[str, str] = {}
    overrides: dict[str, str] = {}
    for file in resources.files(__package__).joinpath("sql").iterdir():
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
    """The queries of one file."""
    _, *parts = _NAME.split(text)
    names = parts[::2]
    if len(set(names)) < len(names):
        msg = f"{stem}: a query is there twice"
        raise LookupError(msg)
    return {f"{stem}.{name}": body.strip() for name, body in zip(names, parts[1::2], strict=True)}
