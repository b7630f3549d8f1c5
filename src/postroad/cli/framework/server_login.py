"""The logins of `postroad login`: which servers there are, and the API key of each.

They are in one file of mode 0600 in the user's configuration folder. The server of the last login is the current one.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import click

FOLDER: Final = "postroad"
FILE: Final = "login.json"
PRIVATE_FOLDER: Final = 0o700


class LoginError(Exception):
    """The file cannot be used; the message has the reason."""


@dataclass(frozen=True, slots=True)
class Logins:
    """The API keys by URL, and the URL that commands use by default."""

    current: str = ""
    keys: Mapping[str, str] = field(default_factory=dict, repr=False)

    def added(self, url: str, key: str) -> "Logins":
        return Logins(url, {**self.keys, url: key})

    def removed(self, url: str) -> "Logins":
        """Without a server; there is no current one if it was that."""
        left = {named: key for named, key in self.keys.items() if named != url}
        return Logins("" if self.current == url else self.current, left)


def path(environment: Mapping[str, str]) -> Path:
    """Where the file is: in `XDG_CONFIG_HOME`, by default `~/.config`."""
    configured = environment.get("XDG_CONFIG_HOME", "")
    return (Path(configured) if configured else Path.home() / ".config") / FOLDER / FILE


def load(file: Path) -> Logins:
    """What is stored; nothing if there is no file, or if it is another user's, who could name any server."""
    try:
        with file.open("rb") as opened:
            if os.fstat(opened.fileno()).st_uid != os.geteuid():
                click.echo(f"Ignored {file}: it belongs to another user. Set HOME to your own.", err=True)
                return Logins()
            stored: Any = json.load(opened)
        return Logins(str(stored["current"]), {str(url): str(key) for url, key in stored["keys"].items()})
    except FileNotFoundError:
        return Logins()
    except PermissionError as problem:
        if _is_of_another_user(file):
            return Logins()
        raise LoginError(f"{file} cannot be read: {problem.strerror}") from None
    except OSError as problem:
        raise LoginError(f"{file} cannot be read: {problem.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise LoginError(f"{file} is damaged; delete it and run 'postroad login' again") from None


def _is_of_another_user(file: Path) -> bool:
    """Whether this user may not even see the file: `runuser -u postroad` leaves HOME as it is, that of root."""
    try:
        file.stat()
    except PermissionError:
        return True
    return False


def store(file: Path, logins: Logins) -> None:
    """Replace the file, or delete it when there is no login left. Nobody else can read it at any moment."""
    try:
        if file.exists() and file.stat().st_uid != os.geteuid():
            raise LoginError(f"{file} belongs to another user; set HOME to your own")
        if not logins.keys:
            file.unlink(missing_ok=True)
            return
        file.parent.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        # `tempfile` takes longer to import than the rest of this module.
        part = file.with_name(f"{file.name}.{os.getpid()}")
        try:
            descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as new:
                json.dump({"current": logins.current, "keys": dict(logins.keys)}, new, indent=2)
            part.replace(file)
        finally:
            part.unlink(missing_ok=True)
    except OSError as problem:
        raise LoginError(f"{file} cannot be written: {problem.strerror}") from None
