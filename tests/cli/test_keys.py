"""`postroad key rotate`: at every moment the key of the database is in one of the three files."""

import dataclasses
import re
import stat
from pathlib import Path

import pytest

from postroad.cli.installation import keys
from postroad.mail.signing import domain_keys
from postroad.services.operations import key_replacement
from tests.cli import cli_runner
from tests.cli.both_engines import empty
from tests.cli.cli_runner import Installation

__all__ = ["empty"]

OLD = cli_runner.SECRET_KEY
NEW = "of an operator: Zs9Lr2Xd5Kf8Hb1Vc6Jm3Pg7Yq0wT4n"


@pytest.fixture
def key(tmp_path: Path) -> Path:
    file = tmp_path / "installation.key"
    file.write_text(OLD + "\n")
    file.chmod(0o600)
    return file


@pytest.fixture
def sealed(installation: Installation, key: Path) -> Installation:
    """An installation whose key is in a file, with a domain that has keys."""
    text = installation.file.read_text().replace(f'installation_key = "{OLD}"', f'installation_key_file = "{key}"')
    installation.file.write_text(text)
    installation.text("domain", "add", "example.com", "--verified")
    assert signing_key(installation) is not None
    return installation


def signing_key(installation: Installation) -> domain_keys.SigningKey | None:
    """The decrypted key of the domain."""
    account = installation.json("account", "list")["accounts"][0]["id"]
    found = installation.ask(lambda ctx: domain_keys.signing_key(ctx, account, "example.com"))
    return found and dataclasses.replace(found, ed25519=None)


def test_a_generated_key_replaces_the_old_one_which_is_kept(sealed: Installation, key: Path) -> None:
    before = signing_key(sealed)
    report = sealed.json("key", "rotate")
    assert report == {"key_file": str(key), "previous_key_file": f"{key}.previous", "secrets": 2}
    made = key.read_text()
    assert re.fullmatch(r"[\w-]{80,}\n", made)
    assert Path(f"{key}.previous").read_text() == OLD + "\n"
    assert {stat.S_IMODE(file.stat().st_mode) for file in (key, Path(f"{key}.previous"))} == {0o600}
    assert sorted(file.name for file in key.parent.glob("installation.key*")) == [
        "installation.key",
        "installation.key.previous",
    ]
    assert signing_key(sealed) == before
    assert "rotated the installation key" in sealed.text("audit-log", "--installation")
    assert made.strip() not in sealed.run("key", "rotate").output


def test_the_new_key_can_be_given(sealed: Installation, key: Path, tmp_path: Path) -> None:
    given = tmp_path / "given.key"
    given.write_text("too short")
    assert "too weak" in sealed.refusal("key", "rotate", "--new-key", str(given))
    assert not Path(f"{key}.new").exists()
    given.write_text(NEW)
    assert sealed.text("key", "rotate", "--new-key", str(given)).startswith("The installation key is replaced, and 2")
    assert key.read_text() == NEW + "\n"


def test_another_key_is_refused_by_every_command(sealed: Installation, key: Path) -> None:
    key.write_text(NEW)
    refusal = sealed.refusal("account", "list")
    assert "the installation key does not match this database" in refusal
    assert NEW not in refusal


def test_a_key_in_the_settings_is_not_replaced(installation: Installation) -> None:
    assert "security.installation_key_file: must name the file" in installation.refusal("key", "rotate")


def test_a_crash_before_the_commit_leaves_the_old_key(
    sealed: Installation, key: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def crash(*_: object, **__: object) -> int:
        raise SystemExit(9)

    with monkeypatch.context() as patch:
        patch.setattr(key_replacement, "rotate", crash)
        assert sealed.run("key", "rotate").exit_code == 9
    assert key.read_text() == OLD + "\n"
    assert Path(f"{key}.new").exists()
    before = signing_key(sealed)
    sealed.text("key", "rotate")
    assert signing_key(sealed) == before


@pytest.mark.parametrize("after_the_copy", [False, True])
def test_a_crash_after_the_commit_is_completed_by_the_next_run(
    sealed: Installation, key: Path, monkeypatch: pytest.MonkeyPatch, *, after_the_copy: bool
) -> None:
    before = signing_key(sealed)
    written = keys._write

    def crash(path: Path, text: str, *, like: Path) -> None:
        if path.name.endswith(".previous") and not after_the_copy:
            raise SystemExit(9)
        written(path, text, like=like)
        if path.name.endswith(".previous"):
            raise SystemExit(9)

    with monkeypatch.context() as patch:
        patch.setattr(keys, "_write", crash)
        assert sealed.run("key", "rotate").exit_code == 9
    assert key.read_text() == OLD + "\n"
    new = Path(f"{key}.new").read_text()
    assert sealed.refusal("account", "list").endswith("if 'postroad key rotate' was interrupted, run it again")
    assert sealed.text("key", "rotate").startswith("The interrupted rotation is complete. Copy")
    assert key.read_text() == new
    assert Path(f"{key}.previous").read_text() == OLD + "\n"
    assert signing_key(sealed) == before


def test_a_folder_that_cannot_be_written_changes_nothing(sealed: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, like: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(keys, "_write", refuse)
    assert "cannot be written: Permission denied; nothing was changed" in sealed.refusal("key", "rotate")
    signing_key(sealed)
