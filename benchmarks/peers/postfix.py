"""A private Postfix on loopback, tuned and durable, that holds the mail it accepts or relays it to one next hop.

Its configuration, queue and data live in a folder of the benchmark; the system's Postfix is not touched. Each message
goes through smtpd and cleanup into a queue file that is synced before the 250 (RFC 5321 section 4.2.5). HOLD keeps it
away from the queue manager, so nothing is delivered and nothing but the accept is paid; a relay delivers everything.
All settings below favour Postfix: no DNS, no client limits, no restarts of workers, no address mappings, no TLS, and
the concurrency that was fastest. Postfix starts only as root.
"""

import contextlib
import os
import pathlib
import shutil
import subprocess
import typing

from benchmarks.peers import next_hop, process

NAME = "Postfix"

MAIN_CF = """
compatibility_level = 3.6
queue_directory = {folder}/queue
data_directory = {folder}/data
myhostname = postfix.example.com
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
mynetworks = 127.0.0.0/8
mydestination =
local_recipient_maps =
alias_maps =
alias_database =
smtp_dns_support_level = disabled
smtpd_peername_lookup = no
smtpd_tls_security_level = none
smtpd_relay_restrictions = permit_mynetworks, reject
smtpd_client_connection_count_limit = 0
smtpd_client_connection_rate_limit = 0
receive_override_options = no_address_mappings, no_header_body_checks, no_unknown_recipient_checks
in_flow_delay = 0
max_use = 10000
default_process_limit = {processes}
"""

HOLD_CF = """
smtpd_data_restrictions = check_client_access static:HOLD
"""
HOLD_PROCESSES = 200

# The cache of connections costs more than it saves on loopback: its server is one process, asked for every message.
RELAY_CF = """
relayhost = [127.0.0.1]:{next_hop_port}
smtp_connection_cache_on_demand = no
smtp_tls_security_level = none
initial_destination_concurrency = {concurrency}
smtp_destination_concurrency_limit = {concurrency}
qmgr_message_active_limit = 100000
fast_flush_domains =
"""
RELAY_PROCESSES = 100

MILTER_CF = """
smtpd_milters = unix:{milter}
milter_default_action = tempfail
"""

MASTER_CF = """
127.0.0.1:{port} inet n - n - - smtpd
cleanup  unix n - n - 0 cleanup
pickup   unix n - n 60 1 pickup
qmgr     unix n - n 300 1 qmgr
smtp     unix - - n - - smtp
rewrite  unix - - n - - trivial-rewrite
proxymap unix - - n - - proxymap
anvil    unix - - n - 1 anvil
bounce   unix - - n - 0 bounce
defer    unix - - n - 0 bounce
trace    unix - - n - 0 bounce
error    unix - - n - - error
retry    unix - - n - - error
showq    unix n - n - - showq
"""


def missing() -> str | None:
    """Why this peer cannot run here, with the remedy; None when it can."""
    if shutil.which("postfix") is None or shutil.which("smtp-source") is None:
        return "Postfix is not installed: apt-get install postfix"
    if os.geteuid() != 0:
        return "Postfix starts only as root"
    return None


def version() -> str:
    """The version of the installed Postfix."""
    found = subprocess.run(["postconf", "-dh", "mail_version"], capture_output=True, text=True, check=True)
    return found.stdout.strip()


class Postfix:
    """A running private instance; `pid` is its master process, whose children do the work."""

    def __init__(self, folder: pathlib.Path, *, port: int) -> None:
        self.port = port
        self._configuration = folder / "configuration"
        self._queue = folder / "queue"

    @property
    def pid(self) -> int:
        """The master process."""
        return int((self._queue / "pid" / "master.pid").read_text())

    def stored(self) -> int:
        """How many messages lie in the queue, whatever its part."""
        return sum(1 for part in ("hold", "incoming", "active", "deferred") for _ in _files(self._queue / part))

    def start(self) -> None:
        """Start and wait for the port."""
        self._command("start")
        process.wait_until(lambda: process.listens(self.port), what="the start of Postfix")

    def stop(self) -> None:
        """End the master and its children; Postfix's own command waits for them."""
        self._command("stop")

    def _command(self, name: str) -> None:
        command = ["postfix", "-c", str(self._configuration), name]
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL, capture_output=True)


@contextlib.contextmanager
def running(
    folder: pathlib.Path, *, relay: next_hop.Relay | None = None, milter: pathlib.Path | None = None
) -> typing.Iterator[Postfix]:
    """A Postfix with an empty queue, under `folder`, holding or relaying its mail; stopped and deleted at the end.

    What it relays passes through the `milter`, if any.
    """
    configuration = folder / "configuration"
    configuration.mkdir(parents=True)
    (folder / "queue").mkdir()
    (folder / "data").mkdir()
    shutil.chown(folder / "data", user="postfix")
    folder.chmod(0o755)
    port = process.free_port()
    (configuration / "main.cf").write_text(_main_cf(folder, relay=relay, milter=milter))
    (configuration / "master.cf").write_text(MASTER_CF.format(port=port))
    postfix = Postfix(folder, port=port)
    postfix.start()
    try:
        yield postfix
    finally:
        postfix.stop()
        shutil.rmtree(folder)


def _main_cf(folder: pathlib.Path, *, relay: next_hop.Relay | None, milter: pathlib.Path | None) -> str:
    if relay is None:
        return MAIN_CF.format(folder=folder, processes=HOLD_PROCESSES) + HOLD_CF
    settings = MAIN_CF.format(folder=folder, processes=RELAY_PROCESSES)
    settings += RELAY_CF.format(next_hop_port=relay.next_hop_port, concurrency=relay.concurrency)
    if milter is not None:
        settings += MILTER_CF.format(milter=milter)
    return settings


def _files(folder: pathlib.Path) -> typing.Iterator[pathlib.Path]:
    for parent, _, names in os.walk(folder):
        for name in names:
            yield pathlib.Path(parent) / name
