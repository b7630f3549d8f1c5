"""What others wrote is as the manifest of the assets says, and the editor is made of the versions that are recorded."""

import hashlib
import json
import tomllib
from pathlib import Path

from postroad import dashboard

VENDOR = Path(dashboard.__file__).parent / "assets" / "vendor"
MANIFEST = tomllib.loads((VENDOR / "manifest.toml").read_text(encoding="utf-8"))
BUNDLE = Path(__file__).parents[1] / "browser" / "editor_bundle"


def test_every_file_has_the_hash_of_the_manifest() -> None:
    found = {
        folder.name: {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(folder.iterdir())}
        for folder in sorted(VENDOR.iterdir())
        if folder.is_dir()
    }
    assert found == {name: listed["sha256"] for name, listed in MANIFEST.items()}


def test_the_editor_is_built_from_exact_versions() -> None:
    wanted: dict[str, str] = json.loads((BUNDLE / "package.json").read_text())["devDependencies"]
    locked = json.loads((BUNDLE / "package-lock.json").read_text())["packages"]
    assert {name: locked[f"node_modules/{name}"]["version"] for name in wanted} == wanted
    assert MANIFEST["codemirror"]["version"] == wanted[MANIFEST["codemirror"]["package"]]
