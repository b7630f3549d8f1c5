"""The list of attacks names tests, and they exist; the measured ones are all shown."""

import re
from pathlib import Path

from benchmarks.attacks import table as attacks

ROOT = Path(__file__).parent.parent.parent


def test_every_attack_on_the_page_has_its_test() -> None:
    page = (ROOT / "tests" / "security" / "ATTACKS.md").read_text()
    rows = re.findall(r"(?m)^\| .*$", page)[1:]
    assert len(rows) >= 17
    for row in rows:
        named = re.findall(r"`([a-z0-9_/.]+\.py)`", row)
        assert named, row
        for name in named:
            assert (ROOT / "tests" / name).is_file(), name


def test_the_page_shows_every_attack_of_make_fairness() -> None:
    page = (ROOT / "benchmarks" / "attacks" / "RESULTS.md").read_text()
    (section,) = re.findall(
        r"<!-- fairness: begin; written by make fairness -->\n(.*?)\n<!-- fairness: end -->", page, re.DOTALL
    )
    assert re.findall(r"^\| `([a-z-]+)`: ", section, re.MULTILINE) == [attack.name for attack in attacks.ALL]
