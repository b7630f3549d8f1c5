"""What tests do not pay for: passwords that are costly to guess, and a new RSA key for every domain.

Hashes are Argon2id in tests too, but of the least cost that there is. The keys of domains are as large as ours are, and
each worker makes only a few, which its tests use in turn. A test of the cost, or of how keys are made, asks for
`real_passwords` or `real_keys`. Processes that a test starts take no shortcut.
"""

import itertools
import threading
from collections.abc import Iterator
from typing import Final

import pytest

from postroad.services import domain_keys, passwords

# More than the domains of nearly every test, so that those of one test have keys of their own.
KEYS: Final = 8
REAL_COST: Final = (passwords.MEMORY_KIBIBYTES, passwords.PASSES)
# RFC 9106 section 3.1: no less than 8 KiB for each lane.
LEAST_COST: Final = (8, 1)
make_key: Final = domain_keys._generate


class Keys:
    """Keys that are made when they are first needed, and then used in turn."""

    def __init__(self) -> None:
        self._made: list[tuple[bytes, bytes]] = []
        self._turns = itertools.cycle(range(KEYS))
        self._lock = threading.Lock()

    def __call__(self) -> tuple[bytes, bytes]:
        with self._lock:  # keys are asked for in threads
            turn = next(self._turns)
            if turn == len(self._made):
                self._made.append(make_key())
            return self._made[turn]


@pytest.fixture(scope="session", autouse=True)
def _shortcuts() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        _set_cost(patch, LEAST_COST)
        patch.setattr(domain_keys, "_generate", Keys())
        yield


@pytest.fixture
def real_passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    """Passwords cost what they cost in service."""
    _set_cost(monkeypatch, REAL_COST)


@pytest.fixture
def real_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every domain gets a new key."""
    monkeypatch.setattr(domain_keys, "_generate", make_key)


def _set_cost(patch: pytest.MonkeyPatch, cost: tuple[int, int]) -> None:
    memory_kibibytes, passes = cost
    patch.setattr(passwords, "MEMORY_KIBIBYTES", memory_kibibytes)
    patch.setattr(passwords, "PASSES", passes)
