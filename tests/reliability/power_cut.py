"""Run by test_power_cut.py with libc_faults: transactions and leases, and a kill at the end.

Each word is a change: `t` a transaction, `l` a lease, `r` a transaction whose flush fails, `c` a copy of the log to the
main file. It prints which have come through.
"""

import asyncio
import contextlib
import os
import signal
import sys
from pathlib import Path

from postroad import errors
from postroad.storage.engine import sqlite


def set_failing(value: int) -> None:
    with Path(os.environ["LIBC_FAULTS"]).open("r+b", buffering=0) as faults:
        faults.write(value.to_bytes(8, sys.byteorder))


async def change(store: sqlite.SqliteStore, word: str, number: int) -> bool:
    if word == "c":
        await store._copy_log()
        return True
    set_failing(int(word == "r"))
    with contextlib.suppress(errors.ServiceUnavailable):
        async with store.leasing() if word == "l" else store.transaction() as tx:
            await tx.fetch_composed("INSERT INTO kept VALUES ($1)", number)
        return True
    return False


async def main() -> None:
    store = sqlite.SqliteStore(Path(sys.argv[1]))
    async with store.transaction() as tx:
        await tx.run_script("CREATE TABLE kept (number INTEGER)")
    for number, word in enumerate(sys.argv[2:]):
        print(word if await change(store, word, number) else "-", end="", flush=True)  # noqa: T201 - for the test
    os.kill(os.getpid(), signal.SIGKILL)


asyncio.run(main())
