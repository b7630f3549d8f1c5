"""Settings that a test gives for one section, in the sections that they are of."""

from collections.abc import Mapping
from typing import Any, Final

from postroad import config

TESTING: Final = frozenset(config.defaults()["testing"])


def spread(section: str, chosen: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The same, those that are only for tests, and the grace period, in sections of their own."""
    tables: dict[str, dict[str, Any]] = {section: {}, "testing": {}, "shutdown": {}}
    for key, value in chosen.items():
        tables["testing" if key in TESTING else "shutdown" if key == "grace_seconds" else section][key] = value
    return tables
