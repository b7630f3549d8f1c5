"""A private Exim on loopback, tuned and durable, that keeps the mail it accepts or relays it to one next hop.

A message is two files in the spool, content and envelope; both are synced before the 250 (RFC 5321 section 4.2.5), and
so is the folder. The settings favour Exim: no DNS, no ident, no access checks but one rule, no TLS, no limits, no log,
and a spool that is split over many folders, as its manual advises for a large queue. Held mail is only queued.
"""

import contextlib
import dataclasses
import os
import pathlib
import shutil
import typing

from benchmarks.peers import debian, next_hop, process

NAME = "Exim"
USER = "Debian-exim"

CONFIGURATION = """
primary_hostname = exim.example.com
spool_directory = /var/spool
log_file_path = syslog
deliver_drop_privilege = yes
message_logs = no
keep_environment =
add_environment =
local_interfaces = 127.0.0.1
daemon_smtp_ports = {port}
host_lookup =
dns_dnssec_ok = 0
rfc1413_query_timeout = 0s
pipelining_connect_advertise_hosts =
tls_advertise_hosts =
dkim_verify_signers =
smtp_accept_max = 0
smtp_accept_max_per_connection = 0
smtp_accept_queue_per_connection = 0
smtp_enforce_sync = no
smtp_connect_backlog = 512
split_spool_directory = yes
check_spool_space = 0
check_spool_inodes = 0
message_size_limit = 0
qualify_domain = example.com
acl_smtp_rcpt = accept
"""
HOLD = """
queue_only = yes
"""
RELAY = """
begin routers

next_hop:
  driver = manualroute
  route_list = * 127.0.0.1
  self = send
  transport = next_hop

begin transports

next_hop:
  driver = smtp
  port = {next_hop_port}
  hosts_avoid_tls = *
  hosts_try_fastopen =
  hosts_try_prdr =
  allow_localhost
  dnssec_request_domains =

begin retry

* * F,1h,1s
"""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Exim:
    """A running private instance; `pid` is its first process, whose children do the work."""

    pid: int
    port: int
    spool: pathlib.Path

    def stored(self) -> int:
        """How many messages lie in the spool; the header file comes last when one is accepted, and goes first."""
        return sum(name.endswith("-H") for _, _, names in os.walk(self.spool / "input") for name in names)


def missing() -> str | None:
    """Why this peer cannot run here, with the remedy; None when it can."""
    return debian.missing("exim")


def version() -> str:
    """The version of the unpacked Exim."""
    return debian.version("exim")


@contextlib.contextmanager
def running(folder: pathlib.Path, *, relay: next_hop.Relay | None = None) -> typing.Iterator[Exim]:
    """An Exim with an empty spool, under `folder`, holding or relaying its mail; stopped and deleted at the end."""
    port = process.free_port()
    debian.prepare(folder, users=[USER])
    text = CONFIGURATION.format(port=port)
    text += RELAY.format(next_hop_port=relay.next_hop_port) if relay else HOLD
    (folder / "etc" / "exim.conf").write_text(text)
    spool = folder / "var" / "spool"
    spool.mkdir()
    shutil.chown(spool, debian.FIRST_USER, debian.FIRST_USER)
    program = debian.start("exim", folder, "/usr/sbin/exim4", "-bdf", "-C", "/etc/exim.conf", port=port)
    try:
        yield Exim(pid=program.pid, port=port, spool=spool)
    finally:
        process.stop(program)
        shutil.rmtree(folder)
