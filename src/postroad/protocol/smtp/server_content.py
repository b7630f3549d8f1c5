"""Content while it arrives: what exceeds a first part in memory goes to a store that the driver provides.

A client may take minutes to send a message, so hundreds of unfinished ones must not fill the memory. Ordinary mail is
smaller than the first part and never touches a store.
"""

from collections.abc import Callable
from typing import Protocol

# Larger than nearly all mail; 500 clients in the middle of their messages hold 125 MiB.
IN_MEMORY_OCTETS = 256 * 1024


class Store(Protocol):
    """Keeps one content."""

    def write(self, part: bytes) -> bool:
        """Append a part; False when there is no room."""

    def read(self) -> bytes:
        """Everything that was written."""

    def close(self) -> None:
        """Discard everything."""


OpenStore = Callable[[], Store]


class MemoryStore:
    """A store without a limit."""

    def __init__(self) -> None:
        self._kept = bytearray()

    def write(self, part: bytes) -> bool:
        """Append a part."""
        self._kept += part
        return True

    def read(self) -> bytes:
        """Everything."""
        return bytes(self._kept)

    def close(self) -> None:
        """Forget it."""
        self._kept.clear()


class StoredContent:
    """The parts of a content that are not in memory. Without room for one of them, none is kept."""

    __slots__ = ("_open_store", "_store", "is_incomplete", "octets")

    def __init__(self, open_store: OpenStore) -> None:
        self._open_store = open_store
        self._store: Store | None = None
        self.octets = 0
        self.is_incomplete = False

    def append(self, part: bytes) -> None:
        """Keep a part."""
        self.octets += len(part)
        if self.is_incomplete:
            return
        if self._store is None:
            self._store = self._open_store()
        if not self._store.write(part):
            self.is_incomplete = True
            self.discard()

    def take(self) -> bytes:
        """Read everything back, once."""
        if self._store is None:
            return b""
        try:
            return self._store.read()
        finally:
            self.discard()

    def discard(self) -> None:
        """Keep nothing."""
        store, self._store = self._store, None
        if store is not None:
            store.close()
