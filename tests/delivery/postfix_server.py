"""A private Postfix that speaks TLS and keeps what it takes on hold, where its bytes can be read."""

import contextlib
import pathlib
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator

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
TLS_MASTER_CF = "tlsmgr unix - - n 1000 1 tlsmgr\n"

missing = postfix.missing


class Server:
    """A running instance."""

    def __init__(self, running: postfix.Postfix, folder: pathlib.Path) -> None:
        self.port = running.port
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
def running(host: str, *, discarded: str = "") -> Iterator[Server]:
    """An instance with a certificate for a host; `discarded` are keywords that it does not offer."""
    # Postfix works as a user of its own, who may not enter pytest's folders.
    with tempfile.TemporaryDirectory(prefix="postroad-postfix-") as parent:
        pathlib.Path(parent).chmod(0o755)
        folder = pathlib.Path(parent, "instance")
        _write(folder, host, discarded=discarded)
        port = process.free_port()
        master = postfix.MASTER_CF.format(port=port) + TLS_MASTER_CF
        (folder / "configuration" / "master.cf").write_text(master)
        instance = postfix.Postfix(folder, port=port)
        instance.start()
        try:
            yield Server(instance, folder)
        finally:
            instance.stop()


def _write(folder: pathlib.Path, host: str, *, discarded: str) -> None:
    for name in ("configuration", "queue", "data"):
        (folder / name).mkdir(parents=True)
    shutil.chown(folder / "data", user="postfix")
    main = postfix.MAIN_CF.replace("smtpd_tls_security_level = none\n", "") + postfix.HOLD_CF + MORE_CF
    text = main.format(folder=folder, processes=20, discarded=discarded)
    (folder / "configuration" / "main.cf").write_text(text)
    certificate = trustme.CA().issue_cert(host)
    certificate.private_key_and_cert_chain_pem.write_to_path(str(folder / "server.pem"))
