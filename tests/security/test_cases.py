"""The table of security cases against the tests that there are: every case has its tests, and every test its case."""

import ast
import re
from pathlib import Path
from typing import Final

from tests.security import cases

TESTS: Final = Path(__file__).parents[1]
# The cases that were agreed on; a number that is not here was dropped, or belongs to something that does not exist.
NUMBERS: Final = {
    "B": (1, 2, 3, 4, 5, 7, 8, 10, 11, 13),
    "C": (1, 2, 3, 4, 5, 7, 9, 10, 11, 12),
    "D": (1, 2, 3, 5, 7, 8, 11, 12),
    "E": (1, 2, 3, 4, 5, 6, 8, 9, 10, 12, 13, 14, 15, 16, 17, 19, 20),
    "F": (1, 2, 4, 5, 6, 8, 10, 11, 12, 13, 14, 15),
    "G": (1, 2, 5, 6, 7, 8, 9),
    "H": (1, 2, 3, 5, 6),
    "J": (1, 2, 3, 4, 6, 8, 9),
}
NAMED: Final = re.compile(rf"test_([{''.join(NUMBERS).lower()}]\d+)_")


def names_in(file: Path) -> set[str]:
    """The names of a file's tests, read and not run."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {
        node.name
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, functions) and node.name.startswith("test_")
    }


def test_every_case_is_in_the_table() -> None:
    agreed = [f"{letter}{number}" for letter, numbers in NUMBERS.items() for number in numbers]
    assert list(cases.CASES) == agreed
    assert all(case.words.endswith(".") and case.tests for case in cases.CASES.values())


def test_every_test_in_the_table_is_there() -> None:
    wanted = {(file, name) for case in cases.CASES.values() for file, names in case.tests.items() for name in names}
    found = {(file, name) for file in {file for file, _ in wanted} for name in names_in(TESTS / file)}
    assert sorted(wanted - found) == []


def test_every_test_that_is_named_after_a_case_is_in_the_table() -> None:
    for file in sorted((TESTS / "security").glob("test_*.py")):
        for name in sorted(names_in(file)):
            named = NAMED.match(name)
            if named is not None:
                assert name in cases.CASES[named[1].upper()].tests.get(f"security/{file.name}", ()), (file.name, name)
