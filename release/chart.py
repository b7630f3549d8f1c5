"""The Helm chart as a package, with the same bytes each time: `helm package` writes the current time into it."""

import gzip
import io
import re
import tarfile
from pathlib import Path
from typing import Final

NAME: Final = "postroad"
FILE_MODE: Final = 0o644


def write(chart: Path, folder: Path, *, seconds: int) -> Path:
    """Write the package of a chart's folder into another one. Its name has the version, as Helm expects."""
    (version,) = re.findall(r"^version: (.+)$", (chart / "Chart.yaml").read_text(encoding="utf-8"), re.MULTILINE)
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for file in sorted(path for path in chart.rglob("*") if path.is_file()):
            # Without owner, group and mode of the file, which differ between machines.
            entry = tarfile.TarInfo(f"{NAME}/{file.relative_to(chart)}")
            entry.size, entry.mtime, entry.mode = file.stat().st_size, seconds, FILE_MODE
            with file.open("rb") as opened:
                archive.addfile(entry, opened)
    made = folder / f"{NAME}-{version}.tgz"
    made.write_bytes(gzip.compress(content.getvalue(), mtime=seconds))
    return made
