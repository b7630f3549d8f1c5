"""Archives with the same bytes each time: files in order, without owner, group and mode, as machines differ in them."""

import gzip
import io
import tarfile
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

FILE_MODE: Final = 0o644


def write_tar(target: Path, files: Mapping[str, Path], *, seconds: int) -> None:
    """Write a compressed tar archive of files by their names in it."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, file in sorted(files.items()):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime, entry.mode = file.stat().st_size, seconds, FILE_MODE
            with file.open("rb") as opened:
                archive.addfile(entry, opened)
    target.write_bytes(gzip.compress(content.getvalue(), mtime=seconds))


def write_zip(target: Path, files: Mapping[str, Path], *, seconds: int) -> None:
    """Write a zip archive of files by their names in it."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, file in sorted(files.items()):
            entry = zipfile.ZipInfo(name, time.gmtime(seconds)[:6])
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, FILE_MODE << 16
            # As on Unix, wherever it is written.
            entry.create_system = 3
            archive.writestr(entry, file.read_bytes())
