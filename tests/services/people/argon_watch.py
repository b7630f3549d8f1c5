"""Argon2 as it checks passwords: counted, and held back when a test wants that."""

import threading
from collections.abc import Iterator

import argon2
import pytest


class Argon:
    """How often it runs, and how often at once. Every check waits until `go` is set."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.go.set()
        self.costs: list[argon2.Parameters] = []
        self.at_once = 0
        self.most_at_once = 0
        self._lock = threading.Lock()

    @property
    def count(self) -> int:
        return len(self.costs)

    def begin(self, password_hash: str) -> None:
        with self._lock:
            self.costs.append(argon2.extract_parameters(password_hash))
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        self.go.wait(60)

    def end(self) -> None:
        with self._lock:
            self.at_once -= 1


@pytest.fixture
def argon(monkeypatch: pytest.MonkeyPatch) -> Iterator[Argon]:
    watched = Argon()
    verify = argon2.PasswordHasher.verify

    def watched_verify(hasher: argon2.PasswordHasher, password_hash: str, password: bytes) -> bool:
        watched.begin(password_hash)
        try:
            return verify(hasher, password_hash, password)
        finally:
            watched.end()

    monkeypatch.setattr(argon2.PasswordHasher, "verify", watched_verify)
    yield watched
    watched.go.set()
