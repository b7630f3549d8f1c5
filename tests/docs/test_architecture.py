"""ARCHITECTURE.md names what exists: the layers that are enforced, every package, and files; and it is short."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "postroad"
TEXT = (ROOT / "ARCHITECTURE.md").read_text()


def test_the_layers_are_those_that_are_enforced() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    (contract,) = [
        contract for contract in project["tool"]["importlinter"]["contracts"] if contract.get("id") == "layers"
    ]
    (shown,) = re.findall(r"(?m)^cli → .*$", TEXT)
    assert [set(layer.split(" | ")) for layer in shown.split(" → ")] == [
        set(layer.split(" | ")) for layer in contract["layers"]
    ]


def test_every_package_is_listed() -> None:
    tree = TEXT.partition("src/postroad/\n")[2].partition("```")[0]
    for folder in (PACKAGE, PACKAGE / "services"):
        for package in folder.iterdir():
            if (package / "__init__.py").exists():
                assert re.search(rf"(?m)(?:^ +|  ){package.name}/ ", tree), package


def test_files_and_folders_that_are_named_exist() -> None:
    named = re.findall(r"`([a-z_]+/[\w/]*(?:\.py)?)`", TEXT)
    assert len(named) > 15
    assert [name for name in named if not ((PACKAGE / name).exists() or (ROOT / name).exists())] == []


def test_it_is_short() -> None:
    assert len(TEXT.split()) <= 1500
