"""Foreign programs that check DKIM signatures: dkimpy, and Debian's opendkim where it is installed.

`records` stands for DNS: the value of each TXT record by its name.
"""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import dkim  # type: ignore[import-untyped] # it has no types
import pytest

OPENDKIM = shutil.which("opendkim", path=f"{os.defpath}:/usr/sbin:/usr/local/sbin")
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
