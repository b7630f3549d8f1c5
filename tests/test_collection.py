"""The lists of `tests/collection.py` name tests that exist: a file that moves would leave its list unseen."""

from pathlib import Path

from tests import collection

ROOT = Path(__file__).parents[1]
NAMED = [
    *collection.MOSTLY_ONE_ENGINE,
    *collection.LONG_ONLY,
    *(name for names in collection.LONGEST for name in names),
]


def exists(name: str) -> bool:
    beginning, _, function = name.partition("::")
    files = [file for file in ROOT.glob(f"{beginning}*") if file.is_dir() or file.suffix == ".py"]
    return bool(files) and (not function or f"def {function.partition('[')[0]}(" in files[0].read_text())


def test_what_a_list_names_exists() -> None:
    assert [name for name in NAMED if not exists(name)] == []
