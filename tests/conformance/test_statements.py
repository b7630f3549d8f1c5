"""statements.toml: every line of the interface is in it, word for word, and every test that it names exists."""

import ast
import functools
import tomllib
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parent.parent.parent
PAGE: Final = Path(__file__).with_name("interface.md").read_text().splitlines()
LINES: Final[list[dict[str, Any]]] = tomllib.loads(Path(__file__).with_name("statements.toml").read_text())["line"]


def is_heading(number: int) -> bool:
    """Whether a line is empty, a title, or belongs to the head of a table, which is ruled off below."""
    line, below = PAGE[number - 1], PAGE[number] if number < len(PAGE) else ""
    return not line or line.startswith(("#", "|---")) or below.startswith("|---")


@functools.cache
def names_in(path: str) -> frozenset[str]:
    """The tests of a file; none of a file that does not exist."""
    file = ROOT / path
    tree = ast.parse(file.read_text() if file.is_file() else "")
    return frozenset(
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    )


def test_every_line_of_the_interface_is_in_the_table() -> None:
    listed = [line["number"] for line in LINES]
    assert listed == sorted(set(listed))
    assert [number for number in range(1, len(PAGE) + 1) if not is_heading(number) and number not in listed] == []


def test_every_line_is_quoted_as_it_stands() -> None:
    assert [line["text"] for line in LINES] == [PAGE[line["number"] - 1] for line in LINES]


def test_every_line_states_something_or_says_why_not() -> None:
    for line in LINES:
        assert line.keys() - {"number", "text"} in ({"statements"}, {"states_nothing"})
        assert line.get("statements") or line["states_nothing"], line
    assert sum(len(line.get("statements", ())) for line in LINES) >= 350


def test_every_statement_names_tests_that_exist() -> None:
    named = [test for line in LINES for tests in line.get("statements", {}).values() for test in tests or [""]]
    assert [test for test in named if test.partition("::")[2] not in names_in(test.partition("::")[0])] == []
