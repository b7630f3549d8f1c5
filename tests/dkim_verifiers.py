"""Foreign programs that check DKIM signatures: dkimpy, and Debian's opendkim and Mail::DKIM where they are installed.

`records` stands for DNS: the value of each TXT record by its name.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import dkim  # type: ignore[import-untyped] # it has no types
import pytest

OPENDKIM = shutil.which("opendkim", path=f"{os.defpath}:/usr/sbin:/usr/local/sbin")
MAIL_DKIM_PROGRAM = r"""
use strict; use warnings;
use JSON::PP; use Mail::DKIM::DNS; use Mail::DKIM::Verifier; use Net::DNS;
package Records;
sub send {
    my ($self, $name, $type) = @_;
    my $answer = Net::DNS::Packet->new($name, $type);
    my $value = $self->{lc $name};
    $answer->push(answer => Net::DNS::RR->new(name => $name, type => "TXT", txtdata => [unpack "(a200)*", $value]))
        if defined $value;
    return $answer;
}
package main;
local $/;
my $asked = decode_json(<STDIN>);
Mail::DKIM::DNS::resolver(bless $asked->{records}, "Records");
my %found;
for my $file (@{$asked->{files}}) {
    open(my $opened, "<:raw", $file) or die "$file: $!";
    my $verifier = Mail::DKIM::Verifier->new;
    $verifier->PRINT(<$opened>);
    $verifier->CLOSE;
    $found{$file} = $verifier->result_detail;
}
print encode_json(\%found);
"""
needs_opendkim = pytest.mark.skipif(OPENDKIM is None, reason="opendkim is not installed")


def dkimpy_relaxed_body(body: bytes) -> bytes:
    """A body in dkimpy's relaxed form."""
    return bytes(dkim.canonicalization.Relaxed.canonicalize_body(body))


def dkimpy_relaxed_field(name: bytes, value: bytes) -> bytes:
    """A header field in dkimpy's relaxed form."""
    ((lowered, relaxed),) = dkim.canonicalization.Relaxed.canonicalize_headers([(name, value + b"\r\n")])
    return bytes(lowered + b":" + relaxed)


def dkimpy_accepts(message: bytes, records: Mapping[str, str]) -> bool:
    """Whether dkimpy finds the topmost signature valid."""

    def look_up(name: bytes, timeout: int = 5) -> bytes | None:
        value = records.get(name.decode().removesuffix("."))
        return None if value is None else value.encode()

    return bool(dkim.verify(message, dnsfunc=look_up))


def dkimpy_accepts_chain(message: bytes, records: Mapping[str, str]) -> bool:
    """Whether dkimpy finds the ARC chain valid."""

    def look_up(name: bytes, timeout: int = 5) -> bytes:
        return records[name.decode().removesuffix(".")].encode()

    return bool(dkim.arc_verify(message, dnsfunc=look_up)[0] == dkim.CV_Pass)


def opendkim_accepts(message: bytes, records: Mapping[str, str], folder: Path) -> bool:
    """Whether opendkim finds the signature valid; it reads message and records from files in the folder."""
    assert OPENDKIM is not None
    (folder / "message").write_bytes(message)
    (folder / "records").write_text("".join(f"{name} {value}\n" for name, value in records.items()))
    (folder / "opendkim.conf").write_text(f"Mode v\nSyslog no\nTestPublicKeys {folder / 'records'}\n")
    done = subprocess.run(
        [OPENDKIM, "-x", "opendkim.conf", "-v", "-v", "-t", "message"],
        cwd=folder,
        capture_output=True,
        timeout=600,
        check=True,
    )
    said = (done.stdout + done.stderr).decode(errors="replace")
    assert ("dkim=pass" in said) != ("dkim=fail" in said), said
    return "dkim=pass" in said


def has_mail_dkim() -> bool:
    """Whether perl finds the module."""
    asked = ["perl", "-MMail::DKIM", "-e", "1"]
    return shutil.which("perl") is not None and subprocess.run(asked, capture_output=True, check=False).returncode == 0


def mail_dkim_results(messages: Mapping[str, bytes], records: Mapping[str, str], folder: Path) -> dict[str, str]:
    """What Mail::DKIM says of messages by their names, such as `pass`; one process for all of them."""
    for name, message in messages.items():
        (folder / name).write_bytes(message)
    done = subprocess.run(
        ["perl", "-e", MAIL_DKIM_PROGRAM],
        input=json.dumps({"records": dict(records), "files": list(messages)}).encode(),
        cwd=folder,
        capture_output=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    results: dict[str, str] = json.loads(done.stdout)
    return results
