"""A backup as a file: what kind it is, and how it gets its name only when it is complete and on disk."""

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec


def inherit(descriptor: int, like: Path) -> None:
    """As root, give an open new file the owner of another file or folder; if that does not exist, of its folder."""
    if os.geteuid() == 0:
        found = (like if like.exists() else like.absolute().parent).stat()
        # In a container, root may not be allowed to.
        with contextlib.suppress(PermissionError):
            os.fchown(descriptor, found.st_uid, found.st_gid)


# The first bytes of a backup, and the scheme of the database that it fits.
_KINDS: Final = {b"SQLite format 3\0": "sqlite", b"PGDMP": "postgresql"}

# The file, and what SQLite keeps beside it while it is in use.
SIDES: Final = ("", "-wal", "-shm")


class BackupError(RuntimeError):
    """A backup cannot be made or restored, or a database not moved; the message says why and what to do."""


class Contents(msgspec.Struct, frozen=True):
    """What a backup contains; an archive of PostgreSQL does not say, and has version 0."""

    schema_version: int = 0
    counts: Mapping[str, int] = msgspec.field(default_factory=dict)


def kind_of(file: Path) -> str:
    """`sqlite` or `postgresql`."""
    try:
        with file.open("rb") as opened:
            beginning = opened.read(max(map(len, _KINDS)))
    except OSError as problem:
        raise BackupError(f"{file}: {problem.strerror}") from None
    for magic, kind in _KINDS.items():
        if beginning.startswith(magic):
            return kind
    raise BackupError(f"{file} is not a backup of Postroad: neither a SQLite file nor an archive of pg_dump")


@contextlib.contextmanager
def written(file: Path, *, replace: bool) -> Iterator[Path]:
    """A new private file beside `file`, which gets its name when the block ends well, after it is on disk."""
    if file.exists() and not replace:
        raise BackupError(f"{file} exists; choose another name, or replace it with --force")
    part = file.with_name(f"{file.name}.part")
    try:
        remove(part)
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb"):
            inherit(descriptor, file)
    except OSError as problem:
        raise BackupError(f"{part}: {problem.strerror}") from None
    try:
        yield part
        sync(part)
        part.replace(file)
        sync(file.absolute().parent)
    finally:
        remove(part)


def remove(file: Path) -> None:
    """Remove a file, and the log that SQLite has left beside it: a later file of this name must not meet it."""
    for side in SIDES:
        Path(f"{file}{side}").unlink(missing_ok=True)


def sync(path: Path) -> None:
    """Write a file, or the names in a folder, to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
