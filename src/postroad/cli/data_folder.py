"""The folder of `postroad dev`: a database, a key, a lock, and `dev.json`, which tells how to use them.

Everything in it is private to its owner: the folder is 0700 and each file 0600. A folder that was there before and
holds other things is not tightened, for it is not ours; the files in it are private all the same. One process at a
time serves a folder; operator commands may work on it meanwhile.
"""

import contextlib
import fcntl
import os
import secrets
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from postroad import config

PRIVATE_FOLDER: Final = 0o700
KEY_BYTES: Final = 48
# What suits a developer; the environment may say otherwise.
DEV_DEFAULTS: Final = {
    "POSTROAD_DOMAINS__REQUIRE_VERIFIED": "false",
    # Nobody else's DNS is asked about a domain that is only made up.
    "POSTROAD_DOMAINS__CHECK_HOURS": "0",
    "POSTROAD_WARMUP__ENABLED": "false",
    "POSTROAD_LOGS__FORMAT": "console",
    # There is no certificate for loopback, and nobody else can listen to it.
    "POSTROAD_SUBMISSION__AUTH_WITHOUT_TLS": "true",
    # Ten attempts, as in production, but all of them while somebody watches.
    "POSTROAD_DELIVERY__RETRY_SECONDS": "2,3,5,5,5,5,5,5,5",
    "POSTROAD_DELIVERY__POLL_MILLISECONDS": "50",
    # Whoever tries out a bounce will try it again.
    "POSTROAD_DELIVERY__SUPPRESS": "false",
    # A receiver on this machine, without a certificate; and all seven attempts while somebody watches.
    "POSTROAD_WEBHOOKS__ALLOW_INSECURE": "true",
    "POSTROAD_WEBHOOKS__RETRY_SECONDS": "1,2,3,5,8,13",
    "POSTROAD_WEBHOOKS__POLL_MILLISECONDS": "50",
}


class FolderError(Exception):
    """The folder cannot be used; the message says why."""


class Smtp(msgspec.Struct, frozen=True, kw_only=True):
    """Where the SMTP door is, and a credential with its password."""

    # Not in a `dev.json` of before there was this door.
    host: str = ""
    port: int = 0
    username: str
    password: str


class Sink(msgspec.Struct, frozen=True):
    """Where the mailbox simulator listens."""

    host: str
    port: int


class Login(msgspec.Struct, frozen=True):
    """A person's login."""

    email: str
    password: str


class DevInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What `dev.json` tells: where the service is and how to use it."""

    base_url: str
    smtp: Smtp
    api_key: str
    login: Login
    domain: str
    template: str
    # Not in a `dev.json` of before there was a simulator, whose credentials are to be found again all the same.
    sink: Sink | None = None


@dataclass(frozen=True, slots=True)
class DataFolder:
    """A folder of `postroad dev`, which may not exist yet."""

    path: Path

    @property
    def database(self) -> Path:
        """The SQLite file."""
        return self.path / "postroad.sqlite"

    @property
    def key(self) -> Path:
        """The installation's key; its presence marks a folder as ours."""
        return self.path / "secret.key"

    @property
    def info_file(self) -> Path:
        """Addresses and credentials, for people and tests."""
        return self.path / "dev.json"

    @property
    def _backup(self) -> Path:
        return self.path / "dev.json.before"

    @property
    def _lock(self) -> Path:
        return self.path / "lock"

    def prepare(self) -> None:
        """Make the folder, its key and an empty database file, as far as they are missing."""
        try:
            if not self.path.exists() or self.key.exists() or not any(self.path.iterdir()):
                self.path.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
                self.path.chmod(PRIVATE_FOLDER)
                # A project's folder is often a repository: nothing in here is for it.
                _write_once(self.path / ".gitignore", "*\n")
            _write_once(self._lock, "")
            # SQLite gives its log the rights of the database file.
            _write_once(self.database, "")
            _write_once(self.key, secrets.token_urlsafe(KEY_BYTES) + "\n")
        except OSError as problem:
            raise FolderError(f"{self.path} cannot be used as a data folder: {problem.strerror}") from None

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder for one service; the system lets go of it when the process ends, however it ends."""
        with self._lock.open("r") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise FolderError(
                    f"{self.path} is in use by another 'postroad dev'; stop that one, or name a folder with --data"
                ) from None
            yield

    def settings(self, *, environment: Mapping[str, str], listen: Mapping[str, str] | None = None) -> config.Settings:
        """The settings of a development installation. Where its data lives is fixed; the rest can be set.

        `listen` holds the addresses of those that listen, by their sections.
        """
        if not self.key.exists():
            msg = f"{self.path} is not a data folder of 'postroad dev'; start 'postroad dev --data {self.path}' first"
            raise FolderError(msg)
        fixed: dict[str, Mapping[str, object]] = {
            "database": {"url": f"sqlite:///{self.database.absolute()}", "migrate_at_start": True},
            "security": {"secret_key": "", "secret_key_file": str(self.key.absolute())},
            # Every recipient is in the simulator, and those never count.
            "bounce_guard": {"enabled": False},
            **{section: {"listen": where} for section, where in (listen or {}).items()},
        }
        return config.load(environment={**DEV_DEFAULTS, **environment}, overrides=fixed)

    @contextlib.contextmanager
    def previous_info(self) -> Iterator[DevInfo | None]:
        """What the start before has left; None when it is missing or damaged.

        It is out of sight meanwhile: a `dev.json` that can be read never names a service that is not up yet.
        """
        try:
            if self.info_file.exists():
                self.info_file.replace(self._backup)
            yield _read(self._backup)
        finally:
            if self._backup.exists():
                self._backup.replace(self.info_file)

    def write_info(self, info: DevInfo) -> None:
        """Replace `dev.json` in one step, so that a reader never sees half of it."""
        text = msgspec.json.format(msgspec.json.encode(info), indent=2).decode() + "\n"
        _write_new(self.info_file, text).replace(self.info_file)
        self._backup.unlink(missing_ok=True)


def _read(path: Path) -> DevInfo | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=DevInfo)
    except (OSError, msgspec.DecodeError):
        return None


def _write_once(path: Path, text: str) -> None:
    """Make a private file, unless it is there; whoever finds it finds all of it."""
    if not path.exists():
        new = _write_new(path, text)
        with contextlib.suppress(FileExistsError):
            path.hardlink_to(new)
        new.unlink()


def _write_new(path: Path, text: str) -> Path:
    """A private file beside the path, to be put in its place."""
    descriptor, name = tempfile.mkstemp(prefix=f"{path.name}.", dir=path.parent)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    return Path(name)
