"""What tests do not pay for: passwords that are costly to guess, a new RSA key for every domain, waiting for the disk.

Hashes are Argon2id in tests too, but of the least cost that there is. The keys of domains are as large as ours are, and
each worker makes only a few, which its tests use in turn. Commits of SQLite reach the system, but not the disk, as with
the PostgreSQL of tests; files of ours that every start reads are read once, the routes, which never change, are
described once, and the templates of pages are compiled once. Errors in the log are printed
plainly, and the HTTP client of tests does not search the disk with every request for a package that is not there. A
test of the cost, of how keys are made, of the disk or of how files are read asks for `real_passwords`, `real_keys`,
`real_disk` or `real_files`.
Processes that a test starts take no shortcut.
"""

import dataclasses
import functools
import importlib.util
import itertools
import pickle
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from types import CodeType
from typing import Any, Final, TypeVar

import jinja2
import pytest
import structlog
from jinja2 import bccache

from postroad import config
from postroad.api import openapi
from postroad.dashboard.framework import site
from postroad.mail.signing import domain_keys
from postroad.services.people import passwords
from postroad.storage.engine import migrations, queries, sqlite, sqlite_connections
from postroad.web import routing

T = TypeVar("T")

# More than the domains of nearly every test, so that those of one test have keys of their own.
KEYS: Final = 8
REAL_COST: Final = (passwords.MEMORY_KIBIBYTES, passwords.PASSES)
# RFC 9106 section 3.1: no less than 8 KiB for each lane.
MIN_COST: Final = (8, 1)
make_key: Final = domain_keys._generate
READERS: Final = (
    (config, "defaults"),
    (queries, "load"),
    (sqlite, "load_statements"),
    (migrations, "known"),
)


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
        _set_cost(patch, MIN_COST)
        patch.setattr(domain_keys, "_generate", Keys())
        patch.setattr(sqlite_connections, "DURABLE", "OFF")
        for module, name in READERS:
            patch.setattr(module, name, _read_once(getattr(module, name)))
        patch.setattr(openapi, "document", _described_once())
        patch.setattr(site.Pages, "__init__", _compiling_once())
        # With its default, a page of coloured source takes half a second.
        patch.setattr(structlog.get_config()["processors"][-1], "exception_formatter", structlog.dev.plain_traceback)
        if importlib.util.find_spec("sniffio") is None:
            patch.setitem(sys.modules, "sniffio", None)
        yield


@pytest.fixture
def real_passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    """Passwords cost what they cost in service."""
    _set_cost(monkeypatch, REAL_COST)


@pytest.fixture
def real_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every domain gets a new key."""
    monkeypatch.setattr(domain_keys, "_generate", make_key)


@pytest.fixture
def real_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit of SQLite waits until it is on the disk."""
    monkeypatch.setattr(sqlite_connections, "DURABLE", "FULL")


@pytest.fixture
def real_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings, queries and migrations are read whenever they are asked for."""
    for module, name in READERS:
        monkeypatch.setattr(module, name, getattr(module, name).__wrapped__)


def _set_cost(patch: pytest.MonkeyPatch, cost: tuple[int, int]) -> None:
    memory_kibibytes, passes = cost
    patch.setattr(passwords, "MEMORY_KIBIBYTES", memory_kibibytes)
    patch.setattr(passwords, "PASSES", passes)


def _described_once() -> Callable[..., openapi.Schema]:
    """The document of routes that are alike but for their handlers, which every start makes anew."""
    describe = openapi.document
    made: dict[str, bytes] = {}

    def described(
        routes: Sequence[routing.Route[Any]], *, version: str, about: openapi.About = openapi.ACCOUNTS
    ) -> openapi.Schema:
        alike = repr((version, about.title, [dataclasses.replace(route, handler=_no_handler) for route in routes]))
        if alike not in made:
            made[alike] = pickle.dumps(describe(routes, version=version, about=about))
        found: openapi.Schema = pickle.loads(made[alike])  # noqa: S301 - what we have written ourselves
        return found

    return described


class CompiledPages(jinja2.BytecodeCache):
    """What was compiled of templates, by their names and texts."""

    def __init__(self) -> None:
        self._compiled: dict[tuple[str, str], CodeType | None] = {}

    def load_bytecode(self, bucket: bccache.Bucket) -> None:
        bucket.code = self._compiled.get((bucket.key, bucket.checksum))

    def dump_bytecode(self, bucket: bccache.Bucket) -> None:
        self._compiled[bucket.key, bucket.checksum] = bucket.code


def _compiling_once() -> Callable[..., None]:
    """Compile each template once for all services in this process."""
    begin, compiled = site.Pages.__init__, CompiledPages()

    def begin_compiled(pages: site.Pages, address: Callable[[str], str], *, command: Callable[[str], str]) -> None:
        begin(pages, address, command=command)
        pages._environment.bytecode_cache = compiled

    return begin_compiled


async def _no_handler(_context: object, _request: routing.Request) -> routing.Response:
    raise NotImplementedError


def _read_once(read: Callable[..., T]) -> Callable[..., T]:
    """The same, from memory; each caller gets a copy, and may change it."""

    @functools.cache
    def remembered(*arguments: object) -> bytes:
        return pickle.dumps(read(*arguments))

    @functools.wraps(read)
    def reading(*arguments: object) -> T:
        found: T = pickle.loads(remembered(*arguments))  # noqa: S301 - what we have written ourselves
        return found

    return reading
