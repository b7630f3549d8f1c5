"""The pages about moving from another service: the split of mail."""

import re
import runpy
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def example(page: str, name: str) -> str:
    """The code of an example."""
    (code,) = re.findall(rf"<!-- example: {name} -->\n```\w+\n(.*?)```\n", (DOCS / page).read_text(), re.DOTALL)
    return str(code)


def test_the_split_is_the_same_for_every_attempt_of_a_message(tmp_path: Path) -> None:
    (tmp_path / "split.py").write_text(example("compatibility.md", "split"))
    is_moved = runpy.run_path(str(tmp_path / "split.py"))["is_moved"]
    moved = [number for number in range(1_000) if is_moved(f"receipt/{number}", "receipt", 20, frozenset())]
    assert 150 < len(moved) < 250
    more = [number for number in range(1_000) if is_moved(f"receipt/{number}", "receipt", 50, frozenset())]
    assert set(moved) < set(more)
    assert is_moved("receipt/1", "receipt", 0, frozenset({"receipt"}))
    assert not is_moved("receipt/1", "receipt", 0, frozenset({"other"}))
