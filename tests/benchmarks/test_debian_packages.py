"""A machine that cannot have the packages of Debian says why."""

import pathlib

import pytest

from benchmarks import debian_packages


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
