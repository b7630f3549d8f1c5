"""Debian's packages come from an archive that the machine names, and a machine that cannot have them says why."""

import pathlib
import shutil
import subprocess

import pytest

from benchmarks import debian_packages
from tests import newest_python

APT = pytest.mark.skipif(shutil.which("apt-get") is None, reason="apt-get is not on this machine")
SOURCES = """\
Types: deb
URIs: http://mirror.example.com/debian/
Suites: bookworm bookworm-updates
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
"""


@pytest.fixture
def sources(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """The folder of package sources of an apt-get that knows no other ones, and has no lists yet."""
    (tmp_path / "sources").mkdir()
    (tmp_path / "lists" / "partial").mkdir(parents=True)
    (tmp_path / "apt.conf").write_text(
        f'Dir::Etc::SourceList "/dev/null";\nDir::Etc::SourceParts "{tmp_path}/sources";\n'
        f'Dir::State::Lists "{tmp_path}/lists";\n'
    )
    monkeypatch.setenv("APT_CONFIG", str(tmp_path / "apt.conf"))
    return tmp_path / "sources"


@APT
def test_archives_are_those_of_the_package_sources_in_both_forms(sources: pathlib.Path) -> None:
    (sources / "a.sources").write_text(SOURCES)
    (sources / "b.list").write_text("deb [arch=amd64] http://other.example.com/debian stable main\n")
    assert debian_packages.archives() == ["http://mirror.example.com/debian/", "http://other.example.com/debian/"]


@APT
def test_a_machine_whose_sources_lack_the_release_says_so(
    sources: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(debian_packages, "KEYRINGS", [sources])
    (tmp_path / "archive").mkdir()
    (sources / "a.list").write_text(f"deb file:{tmp_path}/archive stable main\n")
    expected = "^no package source of this machine has the release forky of Debian: .*Release"
    with (
        pytest.raises(debian_packages.UnavailableError, match=expected),
        debian_packages.release("forky", folder=tmp_path / "roots"),
    ):
        pass
    assert list((tmp_path / "roots").iterdir()) == []


@pytest.mark.parametrize(
    "user, programs, keyring, reason",
    [
        (1000, {"apt-get", "dpkg-deb"}, True, "only root can unpack packages of Debian"),
        (0, {"dpkg-deb"}, True, "apt-get of Debian is not on this machine"),
        (0, {"apt-get", "dpkg-deb"}, False, "the keys of Debian's archive are not on this machine"),
    ],
)
def test_what_is_missing_is_named(
    user: int,
    programs: set[str],
    *,
    keyring: bool,
    reason: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: pathlib.Path,
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: user)
    monkeypatch.setattr("shutil.which", lambda name: name if name in programs else None)
    monkeypatch.setattr(debian_packages, "KEYRINGS", [tmp_path] if keyring else [])
    with (
        pytest.raises(debian_packages.UnavailableError, match=f"^{reason}"),
        debian_packages.release("forky", folder=tmp_path / "roots"),
    ):
        pass


def test_the_newest_python_starts_through_its_own_loader_and_finds_its_own_pip(tmp_path: pathlib.Path) -> None:
    libraries = tmp_path / "usr" / "lib" / "aarch64-linux-gnu"
    modules = tmp_path / "usr" / "lib" / "python3.14"
    for folder in (libraries, modules, tmp_path / "usr" / "bin"):
        folder.mkdir(parents=True)
    (libraries / "libc.so.6").touch()
    loader = libraries / "ld-linux-aarch64.so.1"
    loader.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    loader.chmod(0o755)
    (modules / "_sysconfigdata__linux.py").write_text("'WHEEL_PKG_DIR': '/usr/share/python-wheels/'")
    program = tmp_path / "usr" / "bin" / "python3.14"
    program.touch()
    newest_python.make_startable(tmp_path, version="3.14")
    (tmp_path / "python").symlink_to(program)  # as an environment has it
    said = subprocess.run([tmp_path / "python", "-c", "a b"], capture_output=True, text=True, check=True).stdout
    started = ["--argv0", str(tmp_path / "python"), "--library-path", str(libraries), f"{program}-program", "-c", "a b"]
    assert said.splitlines() == started
    assert (modules / "_sysconfigdata__linux.py").read_text() == (
        f"'WHEEL_PKG_DIR': '{tmp_path}/usr/share/python-wheels/'"
    )
