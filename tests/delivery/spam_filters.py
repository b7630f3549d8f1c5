"""Filters that are not ours, asked what they think of a message: Debian's SpamAssassin and rspamd.

Both work offline: every question of DNS goes to a server on loopback, both begin with the rules that came with the
package, and neither learns. What they are given is a message as a host has taken it: with the field Return-Path and a
Received that tells from which address it came.

    async with spam_filters.rspamd(folder, dns_port=dns.port) as running:
        verdict = await running.ask(taken)
"""

import asyncio
import contextlib
import json
import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from email.utils import format_datetime, localtime
from pathlib import Path
from typing import Final

import httpx

from benchmarks.peers import process

SBIN: Final = f"{os.defpath}:/usr/sbin:/usr/local/sbin"
RSPAMD: Final = shutil.which("rspamd", path=SBIN)
RSPAMD_FILES: Final = Path("/etc/rspamd")
SPAMASSASSIN: Final = shutil.which("spamassassin", path=SBIN)
SPAMASSASSIN_RULES: Final = Path("/usr/share/spamassassin")
# What weighs less is there to be counted, not to decide.
LEAST: Final = 0.05
# A start takes seconds; this bound is for a machine that is busy with other tests.
TIMEOUT_SECONDS: Final = 300.0

# The address that mail comes from, and the name that it greets with. It is one for benchmarks (RFC 2544): nobody has
# it, and filters have no rule against it as they have against those of documentation.
CLIENT_ADDRESS: Final = "198.18.0.25"
CLIENT_NAME: Final = "relay.example.com"

SPAMASSASSIN_PROGRAM: Final = r"""
use strict; use warnings;
use JSON::PP; use Mail::SpamAssassin;
my ($rules, $state, $port, @files) = @ARGV;
my $filter = Mail::SpamAssassin->new({
    rules_filename => $rules, LOCAL_STATE_DIR => $state, userstate_dir => $state, dont_copy_prefs => 1,
    userprefs_filename => "$state/none", home_dir_for_helpers => $state,
    post_config_text => join("\n", "use_bayes 0", "use_auto_welcomelist 0", "use_razor2 0", "use_pyzor 0",
        "skip_rbl_checks 1", "dns_available yes", "dns_server 127.0.0.1:$port", "trusted_networks 127.0.0.0/8", ""),
});
my %found;
for my $file (@files) {
    open(my $opened, "<:raw", $file) or die "$file: $!";
    my $message = $filter->parse(do { local $/; <$opened> });
    my $status = $filter->check($message);
    my %rules = %{$status->get_names_of_tests_hit_with_scores_hash};
    $found{$file} = {score => $status->get_score + 0, rules => {map { $_ => $rules{$_} + 0 } keys %rules}};
    $status->finish; $message->finish;
}
print encode_json({version => Mail::SpamAssassin::Version(), found => \%found});
"""

RSPAMD_CONF: Final = """
.include "$CONFDIR/common.conf"
options {{
    .include "$CONFDIR/options.inc"
    .include(priority=10) "{folder}/options.inc"
}}
logging {{ type = "file"; filename = "{folder}/rspamd.log"; level = "warning"; }}
worker "normal" {{ bind_socket = "127.0.0.1:{port}"; count = 1; }}
fuzzy_check {{ enabled = false; }}
"""
# All suffixes of domains, and all expressions at once, take half a minute to compile.
RSPAMD_OPTIONS: Final = """
pidfile = "{folder}/rspamd.pid";
filters = "chartable,dkim,regexp";
disable_hyperscan = true;
url_tld = "{folder}/suffixes";
dns {{ nameserver = ["127.0.0.1:{dns_port}"]; timeout = 5s; }}
"""
SUFFIXES: Final = "com\nnet\norg\n"


@dataclass(frozen=True, slots=True)
class Taken:
    """A message that a host took, with its envelope."""

    sender: str
    recipients: tuple[str, ...]
    content: bytes

    def traced(self) -> bytes:
        """What the host would put into a mailbox."""
        return (
            f"Return-Path: <{self.sender}>\r\n"
            f"Received: from {CLIENT_NAME} ({CLIENT_NAME} [{CLIENT_ADDRESS}])\r\n"
            f"\tby mx.example.net with ESMTPS id 0123456789; {format_datetime(localtime())}\r\n"
        ).encode() + self.content


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a filter says: the sum, and the rules that it is made of; those that weigh nothing are left out."""

    score: float
    rules: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Rspamd:
    """A running instance."""

    client: httpx.AsyncClient
    version: str

    async def ask(self, taken: Taken) -> Verdict:
        """What it thinks of a message."""
        fields = [("From", taken.sender), ("IP", CLIENT_ADDRESS), ("Helo", CLIENT_NAME), ("Hostname", CLIENT_NAME)]
        fields += [("Rcpt", recipient) for recipient in taken.recipients]
        response = await self.client.post("/checkv2", content=taken.traced(), headers=fields)
        found = response.raise_for_status().json()
        return _verdict(found["score"], {name: symbol["score"] for name, symbol in found["symbols"].items()})


async def spamassassin(taken: Mapping[str, Taken], folder: Path, *, dns_port: int) -> tuple[str, dict[str, Verdict]]:
    """Its version, and the verdicts on messages by their names: one process for all, because its start takes long."""
    for name, message in taken.items():
        (folder / name).write_bytes(message.traced())
    command = ["perl", "-e", SPAMASSASSIN_PROGRAM, str(SPAMASSASSIN_RULES), str(folder), str(dns_port), *taken]
    done = await asyncio.to_thread(
        subprocess.run, command, cwd=folder, capture_output=True, timeout=TIMEOUT_SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    said = json.loads(done.stdout)
    return said["version"], {name: _verdict(one["score"], one["rules"]) for name, one in said["found"].items()}


@contextlib.asynccontextmanager
async def rspamd(folder: Path, *, dns_port: int) -> AsyncIterator[Rspamd]:
    """An instance of its own for the time of the block."""
    assert RSPAMD is not None
    port = process.free_port()
    (folder / "rspamd.conf").write_text(RSPAMD_CONF.format(folder=folder, port=port))
    (folder / "options.inc").write_text(RSPAMD_OPTIONS.format(folder=folder, dns_port=dns_port))
    (folder / "suffixes").write_text(SUFFIXES)
    places = [f"--var={name}={folder}" for name in ("DBDIR", "RUNDIR", "LOGDIR", "LOCAL_CONFDIR")]
    command = [RSPAMD, "-f", "-i", "-c", str(folder / "rspamd.conf"), f"--var=CONFDIR={RSPAMD_FILES}", *places]
    running = await asyncio.create_subprocess_exec(
        *command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=TIMEOUT_SECONDS) as client:
            yield Rspamd(client, await _version(client, running, folder))
    finally:
        with contextlib.suppress(ProcessLookupError):
            running.terminate()
        await running.wait()


async def _version(client: httpx.AsyncClient, running: asyncio.subprocess.Process, folder: Path) -> str:
    """What it calls itself, as soon as it answers."""
    async with asyncio.timeout(TIMEOUT_SECONDS):
        while True:
            assert running.returncode is None, (folder / "rspamd.log").read_text()
            with contextlib.suppress(httpx.TransportError):
                response = await client.get("/ping")
                return str(response.headers["server"].removeprefix("rspamd/"))
            await asyncio.sleep(0.05)


def _verdict(score: float, rules: Mapping[str, float]) -> Verdict:
    return Verdict(
        round(score, 1), {name: round(weight, 1) for name, weight in sorted(rules.items()) if abs(weight) >= LEAST}
    )
