"""The webhook server process with its endpoints, as the benchmark sees it."""

import contextlib
import pathlib
import shutil
import subprocess
import sys
import typing

import msgspec
import trustme

from benchmarks.peers import process
from benchmarks.peers import webhook_server as receiver

PROGRAM = (sys.executable, "-m", "benchmarks.peers.webhook_server")
AUTHORITY = "authority.pem"
DOMAIN = "hooks.example.org"


class Sink:
    """A webhook server; `authority` is the file with the certificate that vouches for it."""

    def __init__(self, program: subprocess.Popen[bytes], *, folder: pathlib.Path) -> None:
        self.pid = program.pid
        self.authority = folder / AUTHORITY
        self._program = program
        self._folder = folder

    @property
    def name_server(self) -> str:
        """Who knows where its names lead."""
        return f"{receiver.ADDRESS}:{self._numbers()[receiver.NAME_PORT]}"

    def url(self, endpoint: int, *, hangs: bool = False, has_name: bool = True) -> str:
        """The URL of an endpoint; one that hangs never answers, and one without a name shares its host."""
        host = f"a{endpoint}.{DOMAIN}" if has_name else receiver.ADDRESS
        return f"https://{host}:{self._numbers()[receiver.PORT]}/{'h' if hangs else 'a'}{endpoint}"

    def events(self) -> list[int]:
        """How many requests each endpoint has read."""
        return self._numbers()[receiver.FIRST_ENDPOINT :]

    def connections(self) -> int:
        """How many connections it has had."""
        return self._numbers()[receiver.CONNECTIONS]

    def stop(self) -> list[receiver.Sample]:
        """End it, and see the requests that it has kept."""
        process.stop(self._program)
        return msgspec.json.decode((self._folder / receiver.SAMPLES).read_bytes(), type=list[receiver.Sample])

    def listens(self) -> bool:
        """Whether it has begun."""
        if self._program.poll() is not None:
            log = (self._folder / "log").read_text()
            raise RuntimeError(f"the webhook server ended with {self._program.returncode}: {log}")
        numbers = self._numbers()
        return bool(numbers) and numbers[receiver.PORT] > 0

    def _numbers(self) -> list[int]:
        try:
            written = (self._folder / receiver.COUNTS).read_bytes()
        except FileNotFoundError:
            return []
        return memoryview(written).cast("Q").tolist()


@contextlib.contextmanager
def running(folder: pathlib.Path, *, endpoints: int) -> typing.Iterator[Sink]:
    """A webhook server without requests yet; stopped and its files deleted at the end."""
    folder.mkdir(parents=True)
    authority = trustme.CA()
    certificate = authority.issue_cert(receiver.ADDRESS, f"*.{DOMAIN}")
    authority.cert_pem.write_to_path(str(folder / AUTHORITY))
    certificate.private_key_and_cert_chain_pem.write_to_path(str(folder / receiver.CERTIFICATE))
    program = process.start([*PROGRAM, str(folder), str(endpoints)], log=folder / "log")
    try:
        sink = Sink(program, folder=folder)
        process.wait_until(sink.listens, what="the start of the webhook server")
        yield sink
    finally:
        process.stop(program)
        shutil.rmtree(folder)
