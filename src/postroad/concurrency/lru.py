"""A bounded LRU cache."""

from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class LruCache(Generic[K, V]):
    """Values by key, at most `max_entries` of them."""

    def __init__(self, max_entries: int) -> None:
        self._max_entries = max_entries
        # Most recently used last.
        self._values: dict[K, V] = {}

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: K) -> V | None:
        """The value, marked as used."""
        value = self._values.pop(key, None)
        if value is not None:
            self._values[key] = value
        return value

    def put(self, key: K, value: V) -> None:
        """Store a value as the most recently used."""
        self.discard(key)
        self.evict()
        self._values[key] = value

    def discard(self, key: K) -> None:
        """Remove a value, if there is one."""
        self._values.pop(key, None)

    def evict(self) -> V | None:
        """Evict and return the least recently used value, if the cache is full."""
        return self._values.pop(next(iter(self._values))) if len(self._values) >= self._max_entries else None
