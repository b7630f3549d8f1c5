"""`make publish`: checks that a release is ready, and prints what would publish it; `ARGS=--upload` does it.

Each command is one line that a person could type; docs/releasing.md says what is left to do by hand.
"""

import argparse
import fnmatch
import hashlib
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from release import clients, distribution

DIST: Final = "dist"
SUMS: Final = "SHA256SUMS"
IMAGE: Final = "ghcr.io/postroad/postroad"
CHARTS: Final = "oci://ghcr.io/postroad/charts"
PHP_REPOSITORY: Final = "git@github.com:postroad/postroad-php.git"
DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Release:
    """What is to be published: the files in `dist`, those that CI made of the tag, and the image that it pushed."""

    root: Path
    version: str
    ci: Path | None
    digest: str
    # Clients that have not changed: their version is published already.
    unchanged: Sequence[str] = ()

    @property
    def dist(self) -> Path:
        return self.root / DIST


@dataclass(frozen=True, slots=True)
class Command:
    """A command, and what it reads."""

    words: Sequence[str]
    text: str = ""


def files(root: Path, version: str) -> list[str]:
    """Every file of a release, but for its checksums. The Debian package names its architecture."""
    extensions = [package.name for package in distribution.packages(root)[1:]]
    return [
        f"postroad-{version}.tar.gz",
        f"postroad-{version}-py3-none-any.whl",
        *(f"postroad_{name}-{version}-py3-none-any.whl" for name in extensions),
        f"postroad-{version}.cdx.json",
        f"postroad_{version}_*.deb",
        f"postroad-image-{version}.tar.gz",
        f"postroad-{version}.tgz",
        *(name for names in clients.names(root).values() for name in names),
    ]


def problems(release: Release) -> Iterator[str]:
    """Why the release cannot be published yet."""
    tag = f"v{release.version}"
    if _output(release, "git", "status", "--porcelain"):
        yield "the working tree differs from the commit"
    if _output(release, "git", "rev-parse", f"{tag}^{{commit}}") != _output(release, "git", "rev-parse", "HEAD"):
        yield f"the tag {tag} does not name this commit"
    elif _output(release, "git", "verify-tag", tag) is None:
        yield f"the tag {tag} is not signed by a key that gpg knows"
    yield from _problems_of_files(release)
    if release.ci is None:
        yield "no files of CI to compare with: name the folder with --ci"
    elif _read(release.ci / SUMS) != _read(release.dist / SUMS):
        yield f"{release.ci / SUMS} differs from {DIST}/{SUMS}"
    if not DIGEST.fullmatch(release.digest):
        yield "no digest of the image: name the one of the workflow's summary with --image"
    missing = sorted({command.words[0] for command in commands(release) if shutil.which(command.words[0]) is None})
    if missing:
        yield f"not installed: {', '.join(missing)}"


def _problems_of_files(release: Release) -> Iterator[str]:
    lines = _read(release.dist / SUMS).splitlines()
    sums = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
    wanted = files(release.root, release.version)
    if lacking := [pattern for pattern in wanted if not fnmatch.filter(sums, pattern)]:
        yield f"{DIST}/{SUMS} lacks {', '.join(lacking)}: run make release, where all of it can be made"
    # The star of a pattern matches a slash too.
    if strange := [name for name in sums if "/" in name or not any(fnmatch.fnmatch(name, one) for one in wanted)]:
        yield f"{DIST}/{SUMS} names files of no release: {', '.join(strange)}"
    # All files are attached to the page of the release.
    if unlisted := {path.name for path in release.dist.glob("*")} - {*sums, SUMS, f"{SUMS}.asc"}:
        yield f"{DIST}/{SUMS} does not name {', '.join(sorted(unlisted))}"
    changed = [name for name, digest in sums.items() if _digest(release.dist / name) != digest]
    if changed:
        yield f"the checksum differs: {', '.join(changed)}"
    signature = f"{DIST}/{SUMS}.asc"
    if _output(release, "gpg", "--verify", signature, f"{DIST}/{SUMS}") is None:
        yield f"{signature} is no signature of {DIST}/{SUMS} by a key that gpg knows"


def commands(release: Release) -> list[Command]:
    """What publishes everything, in order: the service first, and last the page that announces it."""
    version, own = release.version, clients.versions(release.root)
    here = {client: [f"{DIST}/{name}" for name in names] for client, names in clients.names(release.root).items()}
    of_service = [name for name in files(release.root, version) if name.endswith(".whl") and "client" not in name]
    python = [f"{DIST}/{name}" for name in (f"postroad-{version}.tar.gz", *of_service)]
    go = f"clients/go/v{own['go']}"
    by_client: dict[str, list[Sequence[str]]] = {
        "python": [
            ["twine", "check", "--strict", *here["python"]],
            ["twine", "upload", *here["python"]],
        ],
        "javascript": [["npm", "publish", "--access", "public", f"./{here['javascript'][0]}"]],
        "ruby": [["gem", "push", *here["ruby"]]],
        "php": [
            ["git", "subtree", "split", "--prefix", "clients/php", "--branch", "php-release"],
            ["git", "push", PHP_REPOSITORY, "php-release:main", f"php-release:refs/tags/v{own['php']}"],
        ],
        "go": [
            ["git", "tag", "--sign", go, "--message", f"Postroad for Go {own['go']}"],
            ["git", "push", "origin", go],
        ],
    }
    image = [word for name in (version, "latest") for word in ("--tag", f"{IMAGE}:{name}")]
    lines: list[Sequence[str]] = [
        ["twine", "check", "--strict", *python],
        ["twine", "upload", *python],
        ["docker", "buildx", "imagetools", "create", *image, f"{IMAGE}@{release.digest or 'sha256:…'}"],
        ["helm", "push", f"{DIST}/postroad-{version}.tgz", CHARTS],
        *(line for client, found in by_client.items() if client not in release.unchanged for line in found),
    ]
    attached = sorted(f"{DIST}/{path.name}" for path in release.dist.glob("*"))
    create = ["gh", "release", "create", f"v{version}", "--verify-tag", "--title", f"Postroad {version}"]
    notes = _notes(_read(release.root / "CHANGELOG.md"), version)
    return [*map(Command, lines), Command([*create, "--notes-file", "-", *attached], notes)]


def _notes(changelog: str, version: str) -> str:
    """The section of a version in the changelog, without its title."""
    section = changelog.partition(f"\n## [{version}] - ")[2].partition("\n## [")[0]
    return section.partition("\n")[2].strip() + "\n"


def _read(file: Path) -> str:
    return file.read_text(encoding="utf-8") if file.is_file() else ""


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else ""


def _output(release: Release, *words: str) -> str | None:
    """What a command prints; None if it fails."""
    done = subprocess.run(words, cwd=release.root, capture_output=True, text=True, check=False)
    return None if done.returncode else done.stdout.strip()


def main() -> None:
    """Check, and print or run the commands."""
    parser = argparse.ArgumentParser(prog="make publish", description=__doc__)
    parser.add_argument("--upload", action="store_true", help="run the commands instead of printing them")
    parser.add_argument("--ci", type=Path, metavar="FOLDER", help="the files that the workflow Release made")
    parser.add_argument("--image", default="", metavar="DIGEST", help="the image that the workflow Release pushed")
    parser.add_argument("--unchanged", action="append", default=[], choices=clients.VERSIONS, metavar="CLIENT")
    given = parser.parse_args()
    root = Path.cwd()
    (version,) = re.findall(r'^__version__ = "(.+)"$', _read(root / "src/postroad/__init__.py"), re.MULTILINE)
    release = Release(root, version, given.ci, given.image, given.unchanged)
    found = list(problems(release))
    print(f"Postroad {version}: {'ready to publish' if not found else 'not ready'}")
    for problem in found:
        print(f"  - {problem}")
    if given.upload and found:
        sys.exit("Nothing was uploaded.")
    for command in commands(release):
        print(shlex.join(command.words), flush=True)
        if given.upload:
            done = subprocess.run(command.words, cwd=root, input=command.text or None, text=True, check=False)
            if done.returncode:
                sys.exit(f"{command.words[0]} ended with {done.returncode}; what is printed above it was done.")
    if not given.upload:
        print("Nothing was uploaded; --upload does it. Publish the Java client by hand: see docs/releasing.md")
        sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
