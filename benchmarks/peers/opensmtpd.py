"""A private OpenSMTPD on loopback, tuned, that keeps the mail it accepts or relays it to one next hop.

A message is a folder with its content and its envelope. OpenSMTPD syncs neither of them before the 250: its function
that would (`safe_fclose` in `util.c`) is called nowhere, and system calls show the same. So a message that it has
accepted may be lost with the power, and it promises less than the others. The settings favour OpenSMTPD: no TLS, no
filters, no limit of messages in a session, and limits of deliveries so high that none waits; its parser knows more of
these than its manual. Held mail is accepted while its transfer agent is paused (`-P mta`).
"""

import contextlib
import dataclasses
import pathlib
import shutil
import typing

from benchmarks.peers import debian, next_hop, process

# What tables call it: it promises less than the others, and a row says so itself.
NAME = "OpenSMTPD (nothing synced)"
USERS = ("opensmtpd", "opensmtpq")
# Those that it looks for in its spool, with their owner: root, or the user of the queue.
SPOOL = {"": 0, "offline": 0, "purge": 1, "incoming": 1, "queue": 1, "temporary": 1, "corrupt": 1}
MODES = {"": 0o711, "offline": 0o770}

CONFIGURATION = """
smtp limit max-mails 1000000
scheduler limit max-inflight 100000
mta limit inet4
mta limit max-conn-per-host {concurrency} max-conn-per-route {concurrency} max-conn-per-connector {concurrency}
mta limit conn-delay-route 0 conn-delay-relay 0 reconn-delay-route 0 session-mail-max 1000000
mta limit task-hiwat 100000 task-lowat 50000
listen on 127.0.0.1 port {port} hostname opensmtpd.example.com no-dsn
action "next_hop" relay host "smtp+notls://127.0.0.1:{next_hop_port}"
match from any for any action "next_hop"
"""
# Nobody asks where held mail would go.
NOWHERE = 25


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class OpenSmtpd:
    """A running private instance; `pid` is its first process, whose children do the work."""

    pid: int
    port: int
    queue: pathlib.Path

    def stored(self) -> int:
        """How many messages lie in the queue."""
        return sum(1 for _ in self.queue.glob("*/*/message"))


def missing() -> str | None:
    """Why this peer cannot run here, with the remedy; None when it can."""
    return debian.missing("opensmtpd")


def version() -> str:
    """The version of the unpacked OpenSMTPD."""
    return debian.version("opensmtpd")


@contextlib.contextmanager
def running(folder: pathlib.Path, *, relay: next_hop.Relay | None = None) -> typing.Iterator[OpenSmtpd]:
    """An OpenSMTPD with an empty queue, under `folder`, holding or relaying its mail; stopped and deleted at last."""
    port = process.free_port()
    debian.prepare(folder, users=USERS)
    way = relay or next_hop.Relay(next_hop_port=NOWHERE)
    text = CONFIGURATION.format(port=port, next_hop_port=way.next_hop_port, concurrency=way.concurrency)
    (folder / "etc" / "smtpd.conf").write_text(text)
    authorities = folder / "etc" / "ssl" / "certs" / "ca-certificates.crt"  # it does not start without the file
    authorities.parent.mkdir(parents=True)
    authorities.touch()
    _make_folders(folder / "var")
    words = ["/usr/sbin/smtpd", "-F", *([] if relay else ["-P", "mta"])]
    program = debian.start("opensmtpd", folder, *words, port=port)
    try:
        yield OpenSmtpd(pid=program.pid, port=port, queue=folder / "var" / "spool" / "smtpd" / "queue")
    finally:
        process.stop(program)
        shutil.rmtree(folder)


def _make_folders(var: pathlib.Path) -> None:
    (var / "run").mkdir()
    (var / "lib" / "opensmtpd" / "empty").mkdir(parents=True)
    queue_user = debian.FIRST_USER + USERS.index("opensmtpq")
    for name, owner in SPOOL.items():
        path = var / "spool" / "smtpd" / name
        path.mkdir(parents=True, exist_ok=True)
        shutil.chown(path, queue_user if owner else 0, queue_user if name == "offline" else 0)
        path.chmod(MODES.get(name, 0o700))
