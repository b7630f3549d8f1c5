"""A private Postfix that speaks TLS and keeps what it takes on hold, where its bytes can be read.

It can demand a login, for which it asks `passwords_served`, a server of Dovecot's authentication protocol.
"""

import asyncio
import base64
import contextlib
import pathlib
import re
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping

import trustme

from benchmarks.peers import postfix, process

# Over what the private instance of the benchmarks has: TLS, and fewer words in EHLO when a test wants that.
MORE_CF = """
smtpd_tls_security_level = may
smtpd_tls_chain_files = {folder}/server.pem
smtpd_tls_session_cache_database =
smtpd_discard_ehlo_keywords = {discarded}
smtputf8_enable = yes
message_size_limit = 20000000
"""
SASL_CF = """
smtpd_sasl_auth_enable = yes
smtpd_sasl_type = dovecot
smtpd_sasl_path = inet:127.0.0.1:{sasl_port}
smtpd_tls_auth_only = yes
smtpd_relay_restrictions = permit_sasl_authenticated, reject_unauth_destination
"""
TLS_MASTER_CF = "tlsmgr unix - - n 1000 1 tlsmgr\n"

missing = postfix.missing


class Server:
    """A running instance."""

    def __init__(self, running: postfix.Postfix, folder: pathlib.Path) -> None:
        self.port = running.port
        self.ca_file = str(folder / "authority.pem")
        self._folder = folder

    def contents(self) -> list[bytes]:
        """The messages on hold, each without the header fields that Postfix put in front and with CRLF."""
        held = [path.name for path in (self._folder / "queue" / "hold").rglob("*") if path.is_file()]
        return [self._content(name) for name in sorted(held)]

    def _content(self, name: str) -> bytes:
        command = ["postcat", "-c", str(self._folder / "configuration"), "-bhq", name]
        stored = subprocess.run(command, check=True, capture_output=True).stdout
        own = re.match(rb"(?:Received:[^\n]*\n(?:[ \t][^\n]*\n)*)*", stored)
        assert own is not None
        return stored[own.end() :].replace(b"\n", b"\r\n")


@contextlib.contextmanager
def running(host: str, *, discarded: str = "", sasl_port: int = 0) -> Iterator[Server]:
    """An instance with a certificate for a host; `discarded` are keywords that it does not offer.

    With the port of a server of passwords it relays only after a login.
    """
    # Postfix works as a user of its own, who may not enter pytest's folders.
    with tempfile.TemporaryDirectory(prefix="postroad-postfix-") as parent:
        pathlib.Path(parent).chmod(0o755)
        folder = pathlib.Path(parent, "instance")
        _write(folder, host, discarded=discarded, sasl_port=sasl_port)
        port = process.free_port()
        master = postfix.MASTER_CF.format(port=port) + TLS_MASTER_CF
        (folder / "configuration" / "master.cf").write_text(master)
        instance = postfix.Postfix(folder, port=port)
        instance.start()
        try:
            yield Server(instance, folder)
        finally:
            instance.stop()


@contextlib.asynccontextmanager
async def passwords_served(passwords: Mapping[str, str]) -> AsyncIterator[int]:
    """Dovecot's authentication protocol for PLAIN; gives the port. Passwords may change meanwhile."""
    sessions: set[asyncio.Task[None] | None] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        sessions.add(asyncio.current_task())
        writer.write(b"VERSION\t1\t1\nMECH\tPLAIN\tplaintext\nSPID\t1\nCUID\t1\nCOOKIE\t%b\nDONE\n" % (b"0" * 32))
        while line := await reader.readline():
            verb, *words = line.decode().rstrip("\n").split("\t")
            if verb == "AUTH":
                (response,) = [word.removeprefix("resp=") for word in words if word.startswith("resp=")]
                _, user, password = base64.b64decode(response).decode().split("\0")
                answer = "OK" if passwords.get(user) == password else "FAIL"
                writer.write(f"{answer}\t{words[0]}\tuser={user}\n".encode())
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]
        # Postfix has ended by now, and its connections with it.
        await asyncio.gather(*filter(None, sessions))


def _write(folder: pathlib.Path, host: str, *, discarded: str, sasl_port: int) -> None:
    for name in ("configuration", "queue", "data"):
        (folder / name).mkdir(parents=True)
    shutil.chown(folder / "data", user="postfix")
    main = postfix.MAIN_CF.replace("smtpd_tls_security_level = none\n", "") + postfix.HOLD_CF + MORE_CF
    if sasl_port:
        main = main.replace("smtpd_relay_restrictions = permit_mynetworks, reject\n", "") + SASL_CF
    text = main.format(folder=folder, processes=20, discarded=discarded, sasl_port=sasl_port)
    (folder / "configuration" / "main.cf").write_text(text)
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(folder / "authority.pem"))
    certificate = authority.issue_cert(host)
    certificate.private_key_and_cert_chain_pem.write_to_path(str(folder / "server.pem"))
