"""`make release`: everything that a release of a commit consists of, with its checksums.

Wheels of the service and of its extensions, sdist, Debian package, build context of the image, Helm chart, client
libraries and bill of materials. The bytes are the same every time. What cannot be made on this machine is named at the
end; `--complete` makes that an error.

Everything is made from the files of the commit, in a temporary folder; the wheel from the unpacked sdist, which proves
that the sdist is complete. `dist/` is replaced at the end, or not at all.
"""

import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NoReturn

from release import chart, clients, deb, distribution, image_context, sbom

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
        try:
            left_out = _build(source, made, release)
        except (distribution.BuildError, sbom.SbomError) as problem:
            _refuse(str(problem))
        if left_out and "--complete" in sys.argv[1:]:
            _refuse("; ".join(f"{name}: {reason}" for name, reason in left_out.items()))
        shutil.rmtree(root / DIST, ignore_errors=True)
        shutil.copytree(made, root / DIST)
    _report(root / DIST, release, left_out)


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
    # Some packages keep the modes of files.
    subprocess.run(["tar", "--extract", f"--file={archive}", f"--directory={folder}"], check=True, umask=0o022)
    return folder


def _build(source: Path, made: Path, release: sbom.Release) -> Mapping[str, str]:
    """Build everything. The result is why each file that is left out cannot be made here."""
    version, seconds = release.version, release.seconds
    distribution.build(source, "sdist", made, version=version, seconds=seconds)
    (archive,) = made.glob("*.tar.gz")
    unpacked = source.parent / "unpacked"
    unpacked.mkdir()
    command = ["tar", "--extract", f"--file={archive}", f"--directory={unpacked}", "--strip-components=1"]
    subprocess.run(command, check=True)
    for package in distribution.packages(unpacked):
        distribution.build(package, "wheel", made, version=version, seconds=seconds)
    left_out = _build_debian_package(source, made, release)
    chart.write(source / "deploy" / "chart", made, seconds=seconds)
    image_context.write(source, made / f"postroad-image-{version}.tar.gz", seconds=seconds)
    left_out |= clients.build(source, made, seconds=seconds)
    (made / f"postroad-{version}.cdx.json").write_text(sbom.text(source, release), encoding="utf-8")
    sums = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in sorted(made.iterdir())]
    (made / SUMS).write_text("".join(sums), encoding="utf-8")
    return left_out


def _build_debian_package(source: Path, made: Path, release: sbom.Release) -> dict[str, str]:
    name = f"postroad_{release.version}_*.deb"
    if shutil.which("dpkg-deb") is None:
        return {name: "dpkg-deb is not installed"}
    if not Path("/usr/bin", deb.PYTHON).exists():
        return {name: f"this is {deb.PYTHON}, which is not the Python of this system"}
    deb.build(source, made, made, version=release.version, seconds=release.seconds)
    return {}


def _report(made: Path, release: sbom.Release, left_out: Mapping[str, str]) -> None:
    print(f"Postroad {release.version} of commit {release.commit}, in {made.name}/:")
    for line in (made / SUMS).read_text(encoding="utf-8").splitlines():
        digest, _, name = line.partition("  ")
        print(f"  {name:<40} {(made / name).stat().st_size:>10,} bytes  sha256 {digest}")
    print(f"  {SUMS:<40} to be signed: see docs/releasing.md")
    for name, reason in left_out.items():
        print(f"LEFT OUT: {name}: {reason}")


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
