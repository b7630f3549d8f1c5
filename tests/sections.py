"""Settings that a test gives for one section, in the sections that they are of."""

from collections.abc import Mapping
from typing import Any, Final

from postroad import config

TESTING: Final = frozenset(config.defaults()["testing"])


def spread(section: str, chosen: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The same, those that are only for tests in a section of their own."""
    testing = {key: value for key, value in chosen.items() if key in TESTING}
    return {section: {key: value for key, value in chosen.items() if key not in TESTING}, "testing": testing}
