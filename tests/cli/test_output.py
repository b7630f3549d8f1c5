"""A report has two forms of the same facts."""

import json

import pytest

from postroad.cli.framework import output


def test_a_report_is_printed_as_text_or_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    report = output.Report(data={"name": "grüß"}, text="Hello grüß")
    output.show(report, as_json=False)
    assert capsys.readouterr().out == "Hello grüß\n"
    output.show(report, as_json=True)
    assert json.loads(capsys.readouterr().out) == {"name": "grüß"}


def test_columns_are_as_wide_as_their_widest_cell_and_lines_end_without_spaces() -> None:
    rows = [("a", None, 1), ("longer", "x", 20)]
    table = output.table(["id", "name", "count"], rows, empty="Nothing.")
    assert table == "ID      NAME  COUNT\na       -     1\nlonger  x     20"


def test_a_table_without_rows_is_a_sentence() -> None:
    assert output.table(["id"], [], empty="Nothing.") == "Nothing."


@pytest.mark.parametrize(
    "value, text", [('a"b\\', '"a\\"b\\\\"'), (True, "true"), (7, "7"), ("", '""'), ({"a": 1}, "{ a = 1 }")]
)
def test_a_setting_is_written_as_in_a_configuration_file(value: object, text: str) -> None:
    assert output.literal(value) == text


def test_json_has_nothing_that_a_terminal_obeys(capsys: pytest.CaptureFixture[str]) -> None:
    hostile = "\x1b[2J \x9b2J \x7f \u202e \u2028 \U000e0041 grüß"
    output.show(output.Report(data={"subject": hostile}, text=""), as_json=True)
    printed = capsys.readouterr().out
    assert [one for one in printed if not one.isprintable() and one != "\n"] == []
    assert json.loads(printed) == {"subject": hostile}
    assert "grüß" in printed
