"""Rows of a CSV file (RFC 4180) whose cells no spreadsheet runs.

Spreadsheets run cells that begin with certain characters. Such a text is written with an apostrophe before it, and so
is one that begins with apostrophes and then such a character: taking one off again gives back every text as it was.
Numbers stay numbers, negative ones too.
"""

import csv
import io
import re
from collections.abc import Iterable, Sequence
from typing import Final

# ASVS 1.2.10, and the same characters in full width.
_ACTIVE: Final = r"=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20"
_DANGEROUS: Final = re.compile(f"'*[{_ACTIVE}]")
_MADE_HARMLESS: Final = re.compile(f"'+[{_ACTIVE}]")


def lines(rows: Iterable[Sequence[str | int]]) -> bytes:
    """Rows as a part of a file."""
    text = io.StringIO(newline="")
    csv.writer(text).writerows([_harmless(cell) for cell in row] for row in rows)
    return text.getvalue().encode()


def plain(cell: str) -> str:
    """A text as it was before it was written."""
    return cell[1:] if _MADE_HARMLESS.match(cell) else cell


def _harmless(cell: str | int) -> str | int:
    return f"'{cell}" if isinstance(cell, str) and _DANGEROUS.match(cell) else cell
