"""`postroad`, as a process that dies where it was ordered to. The product knows nothing of it.

A store stands before the real one and watches which queries a transaction runs. An order is a small file: whoever wants
the process dead writes it, and the next transaction of that kind carries it out, by SIGKILL, so that nothing is tidied
up. The log's last line says where it was. Processes are forked from one that has imported everything, which makes a
start quick; what runs then is the command itself.
"""

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Final, cast
from unittest import mock

import msgspec

from postroad import cli
from postroad.storage.engine import open_store, store
from tests.chaos import boundaries
from tests.chaos.boundaries import Moment

KILLED: Final = "killed by order"


def run(words: Sequence[str], *, printed: Path, order: Path) -> None:
    """Be `postroad`; the target of a process. Everything it prints goes to a file."""
    os.setpgid(0, 0)  # an interrupt from the keyboard is for whoever looks after this process
    output = os.open(printed, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for number in (sys.stdout.fileno(), sys.stderr.fileno()):
        os.dup2(output, number)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    open_current = open_store.open_current

    async def open_mortal(url: str, **options: Any) -> store.Store:
        real = await open_current(url, **options)
        return cast("store.Store", CrashingStore(real, order))

    with mock.patch.object(open_store, "open_current", open_mortal):
        cli.main(list(words), prog_name="postroad")


def _end_with_parent() -> None:
    """Whoever started this process may be killed as well; then nobody is left to end it."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
    os._exit(1)


class CrashingStore:
    """A store under whose user the process may die."""

    def __init__(self, real: store.Store, order: Path) -> None:
        self.real = real
        self.dialect = real.dialect
        self._order = order

    def transaction(self) -> AbstractAsyncContextManager[store.Transaction]:
        return self._watch(self.real.transaction())

    def leasing(self) -> AbstractAsyncContextManager[store.Transaction]:
        return self._watch(self.real.leasing())

    @contextlib.asynccontextmanager
    async def _watch(self, real: AbstractAsyncContextManager[store.Transaction]) -> AsyncIterator[store.Transaction]:
        watched = _Watched(self)
        async with real as tx:
            watched.tx = tx
            yield cast("store.Transaction", watched)
            order = self.order_for(watched.kinds)
            if order is not None and order.moment is Moment.BEFORE:
                die(order)
            if order is not None and order.moment is Moment.DURING:
                threading.Timer(order.after_seconds, die, [order]).start()
        if order is not None and order.moment is Moment.AFTER:
            die(order)

    def order_for(self, kinds: set[str]) -> boundaries.Order | None:
        """The order that lies there, if it is about such a transaction."""
        if not kinds:
            return None
        try:
            order = msgspec.json.decode(self._order.read_bytes(), type=boundaries.Order)
        except FileNotFoundError:
            return None
        return order if order.kind in kinds else None

    def reading(self) -> AbstractAsyncContextManager[store.Transaction]:
        return self.real.reading()

    def looking_up(self) -> AbstractAsyncContextManager[store.Transaction]:
        return self.real.looking_up()

    def scanning(self, party: str = "") -> AbstractAsyncContextManager[store.Transaction]:
        return self.real.scanning(party)

    async def close(self) -> None:
        await self.real.close()


class _Watched:
    """A transaction whose queries are noted, whichever method they come by."""

    tx: store.Transaction

    def __init__(self, owner: CrashingStore) -> None:
        self._owner = owner
        self.kinds: set[str] = set()

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        async def noted(query: str, *arguments: Any) -> Any:  # noqa: ANN401 - passed on as it is
            result = await getattr(self.tx, name)(query, *arguments)
            # Statements for no rows at all change nothing, and name no kind.
            if arguments != ([],) and (kind := KIND_OF.get(query)) is not None:
                self.kinds.add(kind)
                order = self._owner.order_for({kind})
                if order is not None and order.moment is Moment.INSIDE:
                    die(order)
            return result

        return noted


KIND_OF: Final = {kind.query: name for name, kind in boundaries.KINDS.items()}


def die(order: boundaries.Order) -> None:
    """Say where, and go at once."""
    line = {"event": KILLED, "kind": order.kind, "moment": order.moment}
    os.write(2, msgspec.json.encode(line) + b"\n")
    os.kill(os.getpid(), signal.SIGKILL)
