"""A dictionary with a bound: what was used least lately goes first."""

from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class LruCache(Generic[K, V]):
    """Values by their keys, at most so many."""

    def __init__(self, max_entries: int) -> None:
        self._max_entries = max_entries
        # The one that was used last is at the end.
        self._values: dict[K, V] = {}

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: K) -> V | None:
        """The value, which counts as used now."""
        value = self._values.pop(key, None)
        if value is not None:
            self._values[key] = value
        return value

    def put(self, key: K, value: V) -> None:
        """Keep a value under a new key."""
        self.evict()
        self._values[key] = value

    def evict(self) -> V | None:
        """Let go of one value when there is no room for another; the one that went."""
        return self._values.pop(next(iter(self._values))) if len(self._values) >= self._max_entries else None
