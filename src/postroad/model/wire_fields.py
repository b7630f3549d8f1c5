"""The public form of a record: its fields by name, with times as text. The API and the command line share it."""

from collections.abc import Iterable
from typing import Any

from postroad.model import times


def of(record: object, names: Iterable[str], /, **changed: Any) -> dict[str, Any]:
    """The named fields, in this order; `changed` has those that differ from the record's own, whatever their names."""
    return {name: changed[name] if name in changed else _public(name, getattr(record, name)) for name in names}


def _public(name: str, value: Any) -> Any:  # noqa: ANN401 - any field
    return times.optional_to_wire(value) if name.endswith(("_at", "_since")) else value
