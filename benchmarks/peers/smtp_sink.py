"""Where delivered mail ends: `smtp-sink` of Postfix, which answers as a quick destination does and throws mail away.

It counts what it has taken (`-c`) into a file, of which only the end is read, so a look costs next to nothing. A sink
that keeps its mail shows what arrives, and is no sink to measure with.
"""

import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import typing

from benchmarks.peers import process

# The sink gives root's rights away and asks to whom. This user owns nothing.
USER = "nobody"
# More than the connections of any peer, so that none waits.
CONNECTIONS = 512
# Holds the last count several times over.
TAIL_BYTES = 256
COUNT = re.compile(rb"mesg=(\d+)\r")


class Sink:
    """A running sink; `kept` is where its mail goes, or None."""

    def __init__(self, pid: int, *, port: int, counts: pathlib.Path, kept: pathlib.Path | None) -> None:
        self.pid = pid
        self.port = port
        self._counts = counts
        self._kept = kept

    def messages(self) -> int:
        """How many messages have been taken."""
        with self._counts.open("rb") as file:
            file.seek(max(file.seek(0, os.SEEK_END) - TAIL_BYTES, 0))
            return newest_count(file.read())

    def mail(self) -> bytes:
        """All mail that was kept, one message after the other."""
        return b"".join(self.letters())

    def letters(self) -> typing.Iterator[bytes]:
        """Each message that was kept, by itself; lines end in LF alone."""
        assert self._kept is not None
        return (path.read_bytes() for path in sorted(self._kept.iterdir()))


def newest_count(written: bytes) -> int:
    """The last whole count in the sink's output; 0 when there is none yet."""
    counts = COUNT.findall(written)
    return int(counts[-1]) if counts else 0


def missing() -> str | None:
    """Why there can be no sink here, with the remedy; None when there can."""
    return None if shutil.which("smtp-sink") else "smtp-sink is not installed: apt-get install postfix"


@contextlib.contextmanager
def running(
    folder: pathlib.Path, *, address: str = "127.0.0.1", port: int | None = None, keep: bool = False
) -> typing.Iterator[Sink]:
    """A sink on loopback that has taken nothing yet; stopped and its files deleted at the end.

    Without a `port` it takes a free one.
    """
    folder.mkdir(parents=True)
    port = port or process.free_port()
    command = ["smtp-sink", "-4", "-c", "-m", str(CONNECTIONS)]
    if os.geteuid() == 0:
        command += ["-u", USER]
    kept = _folder_for_mail(folder) if keep else None
    if kept is not None:
        command += ["-d", f"{kept}/"]
    counts = folder / "counts"
    sink = process.start([*command, f"{address}:{port}", str(CONNECTIONS)], log=counts)
    try:
        process.wait_until(
            lambda: _listening(sink, address=address, port=port, output=counts), what="the start of smtp-sink"
        )
        yield Sink(sink.pid, port=port, counts=counts, kept=kept)
    finally:
        process.stop(sink)
        shutil.rmtree(folder)


def _folder_for_mail(folder: pathlib.Path) -> pathlib.Path:
    kept = folder / "mail"
    kept.mkdir()
    if os.geteuid() == 0:
        shutil.chown(kept, user=USER)
    return kept


def _listening(sink: subprocess.Popen[bytes], *, address: str, port: int, output: pathlib.Path) -> bool:
    if sink.poll() is not None:
        raise RuntimeError(f"smtp-sink ended with {sink.returncode}: {output.read_text()}")
    return process.listens(port, address=address)
