"""A private chasquid on loopback, tuned and durable, that keeps the mail it accepts or relays it to one next hop.

A message is one queue file, synced before the 250 (RFC 5321 section 4.2.5); its folder is not synced. It relays for
nobody who has not logged in, and offers AUTH only over TLS, so the recipient's domain is its own here, and an alias
leads to the next hop, which it finds by MX. Therefore it asks DNS three times for each message (SPF, MX, MTA-STS),
which a name server of the benchmark answers at once. It opens a connection for each message that it delivers, and has
no limit for them. The settings favour chasquid: no log, no hooks, a queue without limit. Held mail waits for an MX that
the name server never tells.
"""

import contextlib
import dataclasses
import os
import pathlib
import shutil
import typing

import trustme

from benchmarks import message
from benchmarks.peers import debian, name_server, next_hop, process

# What tables call it: it promises less than the others, and a row says so itself.
NAME = "chasquid (files synced, not the folder)"
HOST = "chasquid.example.com"
NEXT_DOMAIN = "next-hop.example.org"
NEXT_HOST = "mx.next-hop.example.org"

CONFIGURATION = """
hostname: "{host}"
smtp_address: "127.0.0.1:{port}"
data_dir: "/var/lib/chasquid"
mail_log_path: "/dev/null"
max_queue_items: 10000000
"""
# Where held mail waits for its MX, longer than any round.
RESOLVER_OPTIONS = "options timeout:3600 attempts:1\n"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Chasquid:
    """A running private instance of one process."""

    pid: int
    port: int
    queue: pathlib.Path

    def stored(self) -> int:
        """How many messages lie in the queue; a file whose name begins with a dot is not finished."""
        return sum(1 for entry in os.scandir(self.queue) if entry.name.startswith("m:"))


def missing() -> str | None:
    """Why this peer cannot run here, with the remedy; None when it can."""
    return debian.missing("chasquid")


def version() -> str:
    """The version of the unpacked chasquid."""
    return debian.version("chasquid")


@contextlib.contextmanager
def running(folder: pathlib.Path, *, relay: next_hop.Relay | None = None) -> typing.Iterator[Chasquid]:
    """A chasquid with an empty queue, under `folder`, holding or relaying its mail; stopped and deleted at the end."""
    port, address = process.free_port(), _address()
    words = ["/usr/bin/chasquid", "-config_dir=/etc/chasquid", "-v=-1"]
    words += [f"-testing__outgoing_smtp_port={relay.next_hop_port}"] if relay else []
    records = {(NEXT_DOMAIN, "MX"): f"10 {NEXT_HOST}." if relay else None}
    debian.prepare(folder, users=(), name_server=address)
    _configure(folder / "etc", port=port)
    queue = folder / "var" / "lib" / "chasquid" / "queue"
    queue.mkdir(parents=True)
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, folder)
        stack.enter_context(name_server.running(records, address=address, port=name_server.STANDARD_PORT))
        program = debian.start("chasquid", folder, *words, port=port)
        stack.callback(process.stop, program)
        yield Chasquid(pid=program.pid, port=port, queue=queue)


def _address() -> str:
    """An address of loopback for the name server: `resolv.conf` knows no ports, so each run has its own address."""
    high, low = divmod(os.getpid() % 65_536, 256)
    return f"127.53.{high}.{low}"


def _configure(etc: pathlib.Path, *, port: int) -> None:
    with (etc / "resolv.conf").open("a") as resolver:
        resolver.write(RESOLVER_OPTIONS)
    with (etc / "hosts").open("a") as hosts:
        hosts.write(f"127.0.0.1 {NEXT_HOST}\n")
    certificate = trustme.CA().issue_cert(HOST)  # it does not start without one, and nobody asks for it
    folder = etc / "chasquid"
    files = {
        "chasquid.conf": CONFIGURATION.format(host=HOST, port=port),
        f"domains/{message.RECIPIENT_DOMAIN}/aliases": f"customer: customer@{NEXT_DOMAIN}\n",
        f"certs/{HOST}/fullchain.pem": certificate.cert_chain_pems[0].bytes().decode(),
        f"certs/{HOST}/privkey.pem": certificate.private_key_pem.bytes().decode(),
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
