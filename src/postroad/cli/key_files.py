"""The file of the installation key, and its replacement without a moment in which the key could be lost.

The new key is on disk, as `FILE.new`, before the database is encrypted with it. Afterwards the old one is kept as
`FILE.previous`, and `FILE.new` takes the place of `FILE` in one step. Whenever the process or the host stops, the key
of the database is in one of the three files.
"""

import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from postroad import config
from postroad.storage import file_owner

# 64 bytes of randomness, as text.
KEY_BYTES: Final = 64
PRIVATE: Final = 0o600


@dataclass(frozen=True, slots=True)
class KeyFile:
    """The file that `security.secret_key_file` names."""

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
        """Write the new key, or a generated one, to disk."""
        text = secrets.token_urlsafe(KEY_BYTES) if text is None else text.strip()
        try:
            _write(self.new, f"{text}\n", like=self.path)
        except OSError as problem:
            raise config.ConfigError(
                f"security.secret_key_file: {self.new} cannot be written: {problem.strerror}; nothing was changed. "
                "Run the command with a copy of the key in a folder that can be written, and distribute the new file"
            ) from None

    def replace(self) -> None:
        """Let the new key take the place of the old one, which is kept."""
        _write(self.previous, self.path.read_text(encoding="utf-8"), like=self.path)
        self.new.replace(self.path)
        _flush_folder(self.path.parent)


def _write(path: Path, text: str, *, like: Path) -> None:
    """Write a private file with the owner of another one, of which nobody ever sees a part, and flush it to disk."""
    partial = path.with_name(f"{path.name}.partial")
    partial.unlink(missing_ok=True)
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file_owner.inherit(descriptor, like)
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
    _flush_folder(path.parent)


def _flush_folder(folder: Path) -> None:
    """Flush the names in a folder: a renamed file has its new name after a power failure too."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
