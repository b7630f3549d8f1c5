"""Reads the named queries of `sql/*.sql`.

A file `accounts.sql` holds queries, each introduced by `-- name: by_id` and a line that describes it, and called
`accounts.by_id`. A file `accounts.postgres.sql` overrides single queries for one engine. Placeholders are `$1`, `$2`, …
Text that queries of a file share is introduced by `-- part: filters`; a line `-- include: filters` stands for it.
"""

import re
from collections.abc import Mapping
from importlib import resources

_HEADING = re.compile(r"^-- (name|part): (\w+)\s*$", re.MULTILINE)
_INCLUDE = re.compile(r"^[ ]*-- include: (\w+)[ ]*$", re.MULTILINE)


def load(dialect: str) -> Mapping[str, str]:
    """All queries for an engine (`sqlite` or `postgres`), by `file.query`."""
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
    """The queries of one file, with its parts included."""
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
