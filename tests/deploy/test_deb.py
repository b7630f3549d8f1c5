"""The Debian package: what is in it, how it orders versions, and that it is the same each time."""

import gzip
import itertools
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from release import deb, distribution
from tests import test_repository

ROOT = test_repository.ROOT
VERSION = "0.1.0.dev903+g6f63a0bd"
SECONDS = 1_790_000_000
SCRIPTS = ("postinst", "prerm", "postrm")
PYTHON = f"python3.{sys.version_info.minor}"
SITE = f"./usr/lib/postroad/lib/{PYTHON}/site-packages"

pytestmark = pytest.mark.skipif(
    shutil.which("dpkg-deb") is None, reason="dpkg-deb is not installed: a system of Debian"
)


def output(*words: str) -> str:
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheels")
    for package in distribution.packages(ROOT):
        distribution.build(package, "wheel", folder, version=VERSION, seconds=SECONDS)
    return folder


@pytest.fixture(scope="module")
def package(wheels: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package without the wheels of others, which would have to be downloaded."""
    folder = tmp_path_factory.mktemp("first")
    return deb.build(ROOT, wheels, folder, version=VERSION, seconds=SECONDS, locks=())


@pytest.fixture(scope="module")
def unpacked(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("unpacked")
    subprocess.run(["dpkg-deb", "--raw-extract", package, folder], check=True)
    return folder


def listed(package: Path) -> dict[str, str]:
    """Mode and owner of each file, with where a link goes."""
    lines = [line.split(maxsplit=5) for line in output("dpkg-deb", "--contents", str(package)).splitlines()]
    return {name.rstrip("/"): f"{mode} {owner}" for mode, owner, _, _, _, name in lines}


def test_the_same_files_make_the_same_bytes(package: Path, wheels: Path, tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        again = deb.build(ROOT, wheels, tmp_path, version=VERSION, seconds=SECONDS, locks=())
    finally:
        os.umask(before)
    assert again.name == package.name
    assert again.read_bytes() == package.read_bytes()


def test_the_package_says_what_it_needs(package: Path) -> None:
    architecture = output("dpkg", "--print-architecture").strip()
    assert package.name == f"postroad_0.1.0~dev903+g6f63a0bd_{architecture}.deb"
    names = ("Package", "Version", "Architecture", "Depends")
    fields = {name: output("dpkg-deb", "--field", str(package), name).strip() for name in names}
    assert (fields["Package"], fields["Version"]) == ("postroad", "0.1.0~dev903+g6f63a0bd")
    minor = sys.version_info.minor
    assert re.sub(r"libc6 \(>= 2\.\d+\)", "libc6", fields["Depends"]).split(", ") == [
        "libc6",
        f"python3 (>= 3.{minor})",
        f"python3 (<< 3.{minor + 1})",
        "libgcc-s1",
        "ca-certificates",
        "systemd (>= 250)",
    ]


def test_a_development_build_is_older_than_its_release_and_newer_than_the_build_before() -> None:
    order = ["0.1.0.dev0", "0.1.0.dev903+g6f63a0bd", "0.1.0.dev1000+g00000000", "0.1.0rc1", "0.1.0", "0.1.1.dev1001"]
    versions = [deb.package_version(version) for version in order]
    for older, newer in itertools.pairwise(versions):
        subprocess.run(["dpkg", "--compare-versions", older, "lt", newer], check=True)


def test_the_package_has_the_files_that_an_operator_expects(package: Path) -> None:
    found = listed(package)
    assert {
        "./usr/bin/postroad -> ../lib/postroad/bin/postroad": "lrwxrwxrwx root/root",
        "./usr/lib/postroad/bin/postroad": "-rwxr-xr-x root/root",
        f"./usr/lib/postroad/bin/python3 -> /usr/bin/{PYTHON}": "lrwxrwxrwx root/root",
        f"{SITE}/postroad/defaults.toml": "-rw-r--r-- root/root",
        f"{SITE}/postroad_mcp/__init__.py": "-rw-r--r-- root/root",
        f"{SITE}/postroad/deploy/certbot-deploy-hook.sh": "-rwxr-xr-x root/root",
        f"./usr/share/postroad -> {SITE.replace('./usr/', '../')}/postroad/deploy": "lrwxrwxrwx root/root",
        "./usr/lib/systemd/system/postroad.service": "-rw-r--r-- root/root",
        "./usr/lib/systemd/system/postroad.socket": "-rw-r--r-- root/root",
        "./usr/lib/sysusers.d/postroad.conf": "-rw-r--r-- root/root",
        "./usr/share/man/man1/postroad.1.gz": "-rw-r--r-- root/root",
        "./usr/share/bash-completion/completions/postroad": "-rw-r--r-- root/root",
        "./usr/share/zsh/vendor-completions/_postroad": "-rw-r--r-- root/root",
        "./usr/share/fish/vendor_completions.d/postroad.fish": "-rw-r--r-- root/root",
        "./usr/share/doc/postroad/copyright": "-rw-r--r-- root/root",
        "./usr/share/doc/postroad/changelog.gz": "-rw-r--r-- root/root",
    }.items() <= found.items()
    assert {mode for mode in found.values() if not mode.endswith(" root/root")} == set()
    # Settings and mail are no files of the package: they would be in the way of an upgrade, and of its removal.
    assert [name for name in found if name.startswith(("./etc", "./var")) or name.endswith(".pyc")] == []


def test_no_file_names_the_machine_that_built_it(unpacked: Path, wheels: Path) -> None:
    places = (str(wheels).encode(), str(unpacked.parent).encode(), sys.prefix.encode(), str(ROOT).encode())
    named = [
        (path, place)
        for path in unpacked.rglob("*")
        if path.is_file() and not path.is_symlink()
        for place in places
        if place in path.read_bytes()
    ]
    assert named == []


def test_the_program_runs_in_its_environment_alone(unpacked: Path) -> None:
    home = unpacked / "usr" / "lib" / "postroad"
    assert (home / "bin" / "postroad").read_text().startswith("#!/usr/lib/postroad/bin/python3 -I\n")
    assert (home / "pyvenv.cfg").read_text() == (
        f"home = /usr/bin\ninclude-system-site-packages = false\nversion = 3.{sys.version_info.minor}\n"
    )
    assert (home / "lib" / PYTHON / "site-packages" / "postroad-local.pth").read_text() == "/usr/local/lib/postroad\n"


def test_the_units_are_those_of_the_repository(unpacked: Path) -> None:
    for name in ("postroad.service", "postroad.socket"):
        installed = unpacked / "usr" / "lib" / "systemd" / "system" / name
        assert installed.read_text() == (ROOT / "deploy" / name).read_text()


def test_the_manual_page_has_every_command_and_option(unpacked: Path) -> None:
    page = gzip.decompress((unpacked / "usr/share/man/man1/postroad.1.gz").read_bytes()).decode()
    assert page.startswith('.TH POSTROAD 1 2026-09-21 "Postroad 0.1.0.dev903+g6f63a0bd" "User Commands"\n')
    listed_commands = re.findall(r"^### `(.+)`$", (ROOT / "docs" / "commands.md").read_text(), re.MULTILINE)
    assert len(listed_commands) > 70
    assert sorted(re.findall(r'^\.SS "(.+)"$', page.replace("\\-", "-"), re.MULTILINE)) == sorted(listed_commands)
    assert "\n.TP\n\\fB\\-\\-hostname NAME\\fR\nPublic name of this host, such as mail.example.com.\n" in page


@pytest.mark.skipif(shutil.which("man") is None, reason="man is not installed: apt-get install man-db")
def test_man_shows_the_page_without_a_warning(unpacked: Path) -> None:
    page = unpacked / "usr/share/man/man1/postroad.1.gz"
    environment = {**os.environ, "LC_ALL": "C.UTF-8", "MANROFFSEQ": "", "MANWIDTH": "100"}
    done = subprocess.run(
        ["man", "--warnings", "--local-file", page], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    assert "postroad queue release" in done.stdout


def test_the_scripts_are_valid_shell(unpacked: Path) -> None:
    for name in SCRIPTS:
        subprocess.run(["sh", "-n", unpacked / "DEBIAN" / name], check=True)
        assert os.access(unpacked / "DEBIAN" / name, os.X_OK)


def test_what_is_wrong_is_said(tmp_path: Path) -> None:
    with pytest.raises(distribution.BuildError, match="No matching distribution found for postroad=="):
        deb.build(ROOT, tmp_path, tmp_path, version="0.1.0", seconds=SECONDS, locks=())
