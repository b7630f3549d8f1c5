"""Every test closes what it opens: a socket or child process that is still there at its end fails that very test.

Without this check the garbage collector finds what was left behind during some later test, which then fails with the
ResourceWarning of another. Servers, transports and event loops of asyncio all hold a socket, so it is enough to know
the sockets. What a fixture of a wider scope opens, and the threads that it starts, belong to more than one test, as
does what is opened within `shared`.

Two lists of weak references cost next to nothing; garbage is collected only for a test that has left something behind.
"""

import contextlib
import gc
import socket
import subprocess
import sys
import threading
import warnings
import weakref
from collections.abc import Generator, Iterator
from typing import Any, Final

import pytest

Resource = socket.socket | subprocess.Popen[Any]
MAIN_THREAD: Final = threading.main_thread().ident


class Watch:
    """What was opened since the last test began, and by which thread."""

    def __init__(self) -> None:
        self._opened: list[tuple[weakref.ref[Any], int]] = []
        self._shared_threads: set[int | None] = set()

    def add(self, resource: object) -> None:
        """Remember something that has to be closed."""
        with contextlib.suppress(TypeError):  # a bare `_socket.socket` takes no weak references
            self._opened.append((weakref.ref(resource), threading.get_ident()))

    def begin(self) -> None:
        """A test begins: nothing that is open so far is its own."""
        self._opened.clear()
        self._shared_threads = _other_threads()

    @contextlib.contextmanager
    def sharing(self) -> Iterator[None]:
        """What is opened meanwhile outlives the test, and so do threads that are started."""
        count, threads = len(self._opened), _other_threads()
        try:
            yield
        finally:
            del self._opened[count:]
            self._shared_threads |= _other_threads() - threads

    def left_open(self) -> list[Resource]:
        """What the test has opened and not closed."""
        alive = [resource for found, thread in self._opened if self._is_own(thread) and (resource := found())]
        self._opened.clear()
        return [resource for resource in alive if _is_open(resource)]

    def _is_own(self, thread: int) -> bool:
        return thread == MAIN_THREAD or thread not in self._shared_threads


WATCH: Final = Watch()
shared: Final = WATCH.sharing


def install() -> None:
    """Watch sockets and child processes of this process from now on."""
    sys.addaudithook(_hear)
    make = subprocess.Popen.__init__

    def make_watched(self: subprocess.Popen[Any], *arguments: Any, **options: Any) -> None:
        make(self, *arguments, **options)
        WATCH.add(self)

    subprocess.Popen.__init__ = make_watched  # type: ignore[method-assign] # there is no event that hands over the object


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any]) -> Generator[None, object, object]:
    if fixturedef.scope == "function":
        return (yield)
    with WATCH.sharing():
        return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup() -> Generator[None, None, None]:
    WATCH.begin()
    yield


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, None, None]:
    try:
        yield
    except BaseException:
        _collect(WATCH.left_open())
        raise
    left = WATCH.left_open()
    if left:
        names = "\n".join(f"  {_describe(resource)}" for resource in left)
        _collect(left)
        pytest.fail(f"{item.name} has left open:\n{names}", pytrace=False)


def _hear(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "socket.__new__":
        WATCH.add(arguments[0])


def _other_threads() -> set[int | None]:
    return {thread.ident for thread in threading.enumerate()} - {MAIN_THREAD}


def _is_open(resource: Resource) -> bool:
    if isinstance(resource, socket.socket):
        return resource.fileno() != -1
    pipes = (resource.stdin, resource.stdout, resource.stderr)
    return resource.returncode is None or any(pipe is not None and not pipe.closed for pipe in pipes)


def _describe(resource: Resource) -> str:
    return repr(resource) if isinstance(resource, socket.socket) else f"{resource!r}, its end or its pipes"


def _collect(left: list[Resource]) -> None:
    """Close it now, so that no later test is blamed for it."""
    if not left:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for resource in left:
            if isinstance(resource, socket.socket):
                resource.close()
        left.clear()
        gc.collect()
