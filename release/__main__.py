"""`make release`: wheels of the service and of its extensions, sdist, bill of materials and checksums of a commit.

The bytes are the same every time.

Everything is made from the files of the commit, in a temporary folder; the wheel from the unpacked sdist, which proves
that the sdist is complete. `dist/` is replaced at the end, or not at all.
"""

import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final, NoReturn

from release import distribution, sbom

DIST: Final = "dist"
SUMS: Final = "SHA256SUMS"
MAX_NAMED: Final = 10


def main() -> None:
    """Make the release of the repository in the current folder."""
    root = Path.cwd()
    _refuse_changes(root)
    release = sbom.Release(
        version=_version(root),
        commit=_git(root, "rev-parse", "HEAD"),
        seconds=int(_git(root, "log", "-1", "--format=%ct")),
    )
    _require_changelog(root, release.version)
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / DIST
        made.mkdir()
        source = _export(root, Path(folder) / "source")
        _build(source, made, release)
        shutil.rmtree(root / DIST, ignore_errors=True)
        shutil.copytree(made, root / DIST)
    _report(root / DIST, release)


def _refuse_changes(root: Path) -> None:
    changed = _git(root, "status", "--porcelain").splitlines()
    if changed:
        named = "\n".join(changed[:MAX_NAMED] + (["…"] if len(changed) > MAX_NAMED else []))
        _refuse(f"the working tree differs from the commit; commit or remove what is there first:\n{named}")


def _version(root: Path) -> str:
    (version,) = re.findall(r'^__version__ = "(.+)"$', (root / "src/postroad/__init__.py").read_text(), re.MULTILINE)
    return str(version)


def _require_changelog(root: Path, version: str) -> None:
    section = re.compile(rf"^## \[{re.escape(version)}\] - \d{{4}}-\d{{2}}-\d{{2}}$", re.MULTILINE)
    if not section.search((root / "CHANGELOG.md").read_text(encoding="utf-8")):
        _refuse(
            f"CHANGELOG.md has no section for version {version}; rename [Unreleased] to [{version}] - YYYY-MM-DD, "
            "as docs/releasing.md says"
        )


def _export(root: Path, folder: Path) -> Path:
    """The files of the commit, and nothing that lies beside them."""
    folder.mkdir()
    archive = folder.parent / "source.tar"
    _git(root, "archive", "--format=tar", f"--output={archive}", "HEAD")
    subprocess.run(["tar", "--extract", f"--file={archive}", f"--directory={folder}"], check=True)
    return folder


def _build(source: Path, made: Path, release: sbom.Release) -> None:
    _distribution(source, "sdist", made, release)
    (archive,) = made.glob("*.tar.gz")
    unpacked = source.parent / "unpacked"
    unpacked.mkdir()
    command = ["tar", "--extract", f"--file={archive}", f"--directory={unpacked}", "--strip-components=1"]
    subprocess.run(command, check=True)
    for package in distribution.packages(unpacked):
        _distribution(package, "wheel", made, release)
    try:
        bill = sbom.text(source, release)
    except sbom.SbomError as problem:
        _refuse(str(problem))
    (made / f"postroad-{release.version}.cdx.json").write_text(bill, encoding="utf-8")
    sums = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in sorted(made.iterdir())]
    (made / SUMS).write_text("".join(sums), encoding="utf-8")


def _distribution(package: Path, target: str, made: Path, release: sbom.Release) -> None:
    try:
        distribution.build(package, target, made, version=release.version, seconds=release.seconds)
    except distribution.BuildError as problem:
        _refuse(str(problem))


def _report(made: Path, release: sbom.Release) -> None:
    print(f"Postroad {release.version} of commit {release.commit}, in {made.name}/:")
    for line in (made / SUMS).read_text(encoding="utf-8").splitlines():
        digest, _, name = line.partition("  ")
        print(f"  {name:<40} {(made / name).stat().st_size:>10,} bytes  sha256 {digest}")
    print(f"  {SUMS:<40} to be signed: see docs/releasing.md")


def _git(root: Path, *words: str) -> str:
    try:
        return subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=True).stdout.strip()
    except FileNotFoundError:
        _refuse("git is not installed")
    except subprocess.CalledProcessError as problem:
        _refuse(f"git {words[0]}: {problem.stderr.strip()}")


def _refuse(reason: str) -> NoReturn:
    print(f"No release: {reason}", file=sys.stderr)
    sys.exit(1)


if __name__ == "__main__":
    main()
