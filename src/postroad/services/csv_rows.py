"""CSV rows (RFC 4180) that are safe in spreadsheets.

Spreadsheets evaluate cells that begin with certain characters. Such a text gets an apostrophe in front, and so does one
that begins with apostrophes followed by such a character: removing one restores every text. Numbers stay numbers,
negative ones too.
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
    """Rows as CSV text."""
    text = io.StringIO(newline="")
    csv.writer(text).writerows([_harmless(cell) for cell in row] for row in rows)
    return text.getvalue().encode()


def plain(cell: str) -> str:
    """The original text of a cell."""
    return cell[1:] if _MADE_HARMLESS.match(cell) else cell


def _harmless(cell: str | int) -> str | int:
    return f"'{cell}" if isinstance(cell, str) and _DANGEROUS.match(cell) else cell
