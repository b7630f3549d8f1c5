"""Cells of CSV files: no text begins a formula, every text is read back, and numbers are numbers."""

import csv
import io

import hypothesis
import pytest
from hypothesis import strategies

from postroad.protocol.text import csv_rows

# What a spreadsheet takes for the beginning of a formula.
ACTIVE = "=+-@\t\r\n\uff1d\uff0b\uff0d\uff20"
CELLS = strategies.text(alphabet=strategies.sampled_from([*ACTIVE, *"'\"a,;\u00fc "]), max_size=8)


@hypothesis.given(CELLS)
def test_no_cell_begins_a_formula_and_every_cell_comes_back(cell: str) -> None:
    written = csv_rows.lines([[cell, "x"]]).decode()
    ((read, _),) = csv.reader(io.StringIO(written, newline=""), strict=True)
    assert not read.startswith(tuple(ACTIVE))
    assert csv_rows.plain(read) == cell


def test_numbers_stay_numbers_and_texts_that_look_like_them_do_not() -> None:
    assert csv_rows.lines([[-5, 7, "-5", "7"]]) == b"-5,7,'-5,7\r\n"


@pytest.mark.parametrize("separator", [";", "\t"])
@pytest.mark.parametrize("formula", ["=cmd|' /C calc'!A0", '"=1+1', "'-1", "\uff1d1"])
def test_a_spreadsheet_that_divides_cells_elsewhere_finds_no_formula_either(separator: str, formula: str) -> None:
    """As the reply of a hostile destination may be, with the separators that some countries and programs have."""
    reply = f"no{separator}{formula}{separator}+2"
    written = csv_rows.lines([[550, reply]]).decode()
    for cell in written.replace('"', "").rstrip("\r\n").split(separator):
        assert not cell.startswith(tuple(ACTIVE))
    ((_, read),) = csv.reader(io.StringIO(written, newline=""), strict=True)
    assert csv_rows.plain(read) == reply
