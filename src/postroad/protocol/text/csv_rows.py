"""CSV rows (RFC 4180) that are safe in spreadsheets.

Spreadsheets evaluate cells that begin with certain characters. Such a text gets an apostrophe in front, and so does one
that begins with apostrophes followed by such a character: removing one restores every text. Numbers stay numbers,
negative ones too. Some spreadsheets divide cells at semicolons and tabs as well, so what follows one counts as a cell.
"""

import csv
import io
import re
from collections.abc import Iterable, Sequence
from typing import Final

# ASVS 1.2.10, and the same characters in full width.
_ACTIVE: Final = r"=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20"
# Where a cell begins that would be evaluated. Within a text, quotation marks, which are doubled, may stand before it.
_BEGINNING: Final = rf"""\A{{0}}(?='*[{_ACTIVE}])|(?<=[;\t]){{0}}(?=["']*[{_ACTIVE}])"""
_DANGEROUS: Final = re.compile(_BEGINNING.format(""))
_MADE_HARMLESS: Final = re.compile(_BEGINNING.format("'"))


def lines(rows: Iterable[Sequence[str | int]]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text).writerows([_harmless(cell) for cell in row] for row in rows)
    return text.getvalue().encode()


def plain(cell: str) -> str:
    return _MADE_HARMLESS.sub("", cell)


def _harmless(cell: str | int) -> str | int:
    return _DANGEROUS.sub("'", cell) if isinstance(cell, str) else cell
