"""The pages of the documentation as tests read them."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
CODE = re.compile(r"`([^`\n]+)`")


def rows(page: str, title: str) -> list[list[str]]:
    """The cells of the table whose first title this is."""
    lines = page.split(f"\n| {title} |", 1)[1].splitlines()[2:]
    table = lines[: next(number for number, line in enumerate(lines) if not line.startswith("|"))]
    return [[cell.strip() for cell in line.removeprefix("|").removesuffix("|").split(" | ")] for line in table]
