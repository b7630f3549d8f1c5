"""Pebble, a real ACME server, on loopback: it checks challenges at ports of this host, and every name is 127.0.0.1.

Both programs are in the Debian package `pebble`.
"""

import contextlib
import json
import os
import shutil
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import trustme

from benchmarks.peers import process

PROGRAMS: Final = ("pebble", "pebble-challtestsrv")
REMEDY: Final = "install it with: apt-get install pebble"
START_SECONDS: Final = 120


@dataclass(frozen=True, slots=True)
class Pebble:
    """A running server: its directory, who trusts it, and the ports at which it checks challenges."""

    directory: str
    ca_file: Path
    http_port: int
    tls_port: int


def is_installed() -> bool:
    return all(shutil.which(program) for program in PROGRAMS)


@contextlib.contextmanager
def running(folder: Path) -> Iterator[Pebble]:
    """A server for the time of the block."""
    listen, management, names_management, http, tls, dns = process.free_ports(6)
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    issued.private_key_pem.write_to_path(str(folder / "key.pem"))
    issued.cert_chain_pems[0].write_to_path(str(folder / "chain.pem"))
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    settings = {
        "listenAddress": f"127.0.0.1:{listen}",
        "managementListenAddress": f"127.0.0.1:{management}",
        "certificate": str(folder / "chain.pem"),
        "privateKey": str(folder / "key.pem"),
        "httpPort": http,
        "tlsPort": tls,
        "ocspResponderURL": "",
        "externalAccountBindingRequired": False,
    }
    (folder / "pebble.json").write_text(json.dumps({"pebble": settings}))
    nowhere = ["-http01", "", "-https01", "", "-tlsalpn01", ""]
    # Without an address, it would listen on port 80 of the machine.
    unused = ["-management", f"127.0.0.1:{names_management}"]
    names = ["pebble-challtestsrv", *nowhere, *unused, "-dns01", f"127.0.0.1:{dns}", "-defaultIPv6", ""]
    server = ["pebble", "-config", str(folder / "pebble.json"), "-dnsserver", f"127.0.0.1:{dns}"]
    # No waits before challenges are checked, and no answers that are refused at random.
    environment = {**os.environ, "PEBBLE_VA_NOSLEEP": "1", "PEBBLE_WFE_NONCEREJECT": "0", "PEBBLE_AUTHZREUSE": "0"}
    with contextlib.ExitStack() as stack:
        for command in (names, server):
            stack.enter_context(_process(command, environment))
        pebble = Pebble(f"https://127.0.0.1:{listen}/dir", folder / "ca.pem", http, tls)
        _wait(pebble)
        yield pebble


@contextlib.contextmanager
def _process(command: list[str], environment: dict[str, str]) -> Iterator[None]:
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def _wait(pebble: Pebble) -> None:
    context = ssl.create_default_context(cafile=str(pebble.ca_file))
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            with urllib.request.urlopen(pebble.directory, context=context, timeout=10):  # noqa: S310 - our own
                return
        except (OSError, urllib.error.URLError):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)
