"""`postroad key`: replace the installation key."""

import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click
import msgspec

from postroad import config
from postroad.cli.framework import command, output
from postroad.keys import installation_keys, key_check
from postroad.roles import composition
from postroad.services.operations import key_replacement
from postroad.storage.engine import backup_files, open_store

# The file of the installation key, and its replacement without a moment in which the key could be lost.
#
# The new key is on disk, as `FILE.new`, before the database is encrypted with it. Afterwards the old one is kept as
# `FILE.previous`, and `FILE.new` takes the place of `FILE` in one step. Whenever the process or the host stops, the key
# of the database is in one of the three files.

# 64 bytes of randomness, as text.
KEY_BYTES: Final = 64
PRIVATE: Final = 0o600


@dataclass(frozen=True, slots=True)
class KeyFile:
    """The file that `security.installation_key_file` names."""

    path: Path

    @property
    def new(self) -> Path:
        """The new key, until it replaces the old one."""
        return self.path.with_name(f"{self.path.name}.new")

    @property
    def previous(self) -> Path:
        """The key before, which backups from before the rotation need."""
        return self.path.with_name(f"{self.path.name}.previous")

    def stage(self, text: str | None) -> None:
        text = secrets.token_urlsafe(KEY_BYTES) if text is None else text.strip()
        try:
            _write(self.new, f"{text}\n", like=self.path)
        except OSError as problem:
            raise config.ConfigError(
                f"security.installation_key_file: {self.new} cannot be written: {problem.strerror}; nothing was "
                "changed. Run the command with a copy of the key in a folder that can be written, and distribute the "
                "new file"
            ) from None

    def replace(self) -> None:
        """Let the new key take the place of the old one, which is kept."""
        _write(self.previous, self.path.read_text(encoding="utf-8"), like=self.path)
        self.new.replace(self.path)
        # A renamed file has its new name after a power failure too.
        backup_files.sync(self.path.parent)


def _write(path: Path, text: str, *, like: Path) -> None:
    """Write a private file with the owner of another one, of which nobody ever sees a part, and flush it to disk."""
    partial = path.with_name(f"{path.name}.partial")
    partial.unlink(missing_ok=True)
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        backup_files.inherit(descriptor, like)
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
    backup_files.sync(path.parent)


@click.command("rotate", cls=command.SettingsCommand)
@click.option("--new-key", type=command.FILE, metavar="FILE", help="File with the new key. Default: generate one.")
async def rotate(settings: config.Settings, new_key: Path | None) -> output.Report:
    """Replace the installation key and re-encrypt every stored secret.

    The new key is written to the file of the key, and the old one kept as FILE.previous, which backups from before
    need. If interrupted, run it again. Then restart every process.
    """
    if not settings.security.installation_key_file:
        raise config.ConfigError(
            "security.installation_key_file: must name the file of the installation key, which is replaced; write the "
            "key of security.installation_key into a file first"
        )
    file = KeyFile(Path(settings.security.installation_key_file))
    if file.new.exists() and await _fits(settings, file.new):
        # A rotation stopped after its transaction.
        file.replace()
        return _report(file, "The interrupted rotation is complete", secrets=None)
    text = None if new_key is None else _key(settings, new_key).decode()
    async with composition.open_context(settings) as context:
        file.stage(text)
        count = await key_replacement.rotate(
            context, old=config.installation_key(settings.security), new=_key(settings, file.new)
        )
    file.replace()
    return _report(file, f"The installation key is replaced, and {count} secrets are re-encrypted", secrets=count)


def _key(settings: config.Settings, file: Path) -> bytes:
    return config.installation_key(
        msgspec.structs.replace(settings.security, installation_key="", installation_key_file=str(file))
    )


async def _fits(settings: config.Settings, file: Path) -> bool:
    keys = installation_keys.Keys.derive(_key(settings, file))
    database = await open_store.open_current(settings.database.url, connections=1, migrate=False)
    try:
        async with database.reading() as tx:
            return await key_check.state(tx, keys) is key_check.KeyState.FITS
    finally:
        await database.close()


def _report(file: KeyFile, done: str, *, secrets: int | None) -> output.Report:
    text = (
        f"{done}. Copy {file.path} to every other host, then restart all processes now: until then they cannot sign "
        f"mail or webhooks. {file.previous} has the old key, which backups from before need; keep it as long as those."
    )
    data = {"key_file": str(file.path), "previous_key_file": str(file.previous), "secrets": secrets}
    return output.Report(data=data, text=text)
