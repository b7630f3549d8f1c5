"""The Helm chart as a package, without Helm: `helm package` writes the current time into it."""

import re
from pathlib import Path
from typing import Final

from release import archives

NAME: Final = "postroad"


def write(chart: Path, folder: Path, *, seconds: int) -> Path:
    """Write the package of a chart's folder into another one. Its name has the version, as Helm expects."""
    (version,) = re.findall(r"^version: (.+)$", (chart / "Chart.yaml").read_text(encoding="utf-8"), re.MULTILINE)
    made = folder / f"{NAME}-{version}.tgz"
    files = {f"{NAME}/{path.relative_to(chart)}": path for path in chart.rglob("*") if path.is_file()}
    archives.write_tar(made, files, seconds=seconds)
    return made
