"""A private OpenDKIM that signs for Postfix as a milter: RSA-2048, rsa-sha256, relaxed/relaxed (RFC 6376).

It has a key of its own, and the system's OpenDKIM is not touched. It listens on a socket file: over TCP it and Postfix
wait for each other, which halved the rate on an idle machine. It signs only, keeps no log and asks no DNS: everything
that would slow it is off.
"""

import contextlib
import dataclasses
import pathlib
import shutil
import subprocess
import typing

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from benchmarks import message
from benchmarks.peers import process

KEY_BITS = 2048
CONFIGURATION = """
Mode s
Domain {domain}
Selector benchmark
KeyFile {folder}/private.pem
Socket local:{socket}
UMask 000
InternalHosts 127.0.0.1
Canonicalization relaxed/relaxed
SignatureAlgorithm rsa-sha256
RequireSafeKeys no
Background no
Syslog no
"""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class OpenDkim:
    """A running milter."""

    pid: int
    socket: pathlib.Path


def missing() -> str | None:
    """Why this peer cannot run here, with the remedy; None when it can."""
    return None if shutil.which("opendkim") else "OpenDKIM is not installed: apt-get install opendkim"


def version() -> str:
    """The version of the installed OpenDKIM."""
    banner = subprocess.run(["opendkim", "-V"], capture_output=True, text=True, check=True).stdout
    return banner.splitlines()[0].rpartition(" v")[2]


@contextlib.contextmanager
def running(folder: pathlib.Path) -> typing.Iterator[OpenDkim]:
    """A milter with a new key for the sender's domain; stopped and its key deleted at the end."""
    folder.mkdir(parents=True)
    socket = folder / "milter"
    domain = message.SENDER.partition("@")[2]
    configuration = folder / "opendkim.conf"
    configuration.write_text(CONFIGURATION.format(domain=domain, folder=folder, socket=socket))
    (folder / "private.pem").write_bytes(_private_key())
    milter = process.start(["opendkim", "-f", "-x", str(configuration)], log=folder / "opendkim.log")
    try:
        process.wait_until(socket.exists, what="the start of OpenDKIM")
        yield OpenDkim(pid=milter.pid, socket=socket)
    finally:
        process.stop(milter)
        shutil.rmtree(folder)


def _private_key() -> bytes:
    key = rsa.generate_private_key(public_exponent=65537, key_size=KEY_BITS)
    form = serialization.PrivateFormat.TraditionalOpenSSL
    return key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
