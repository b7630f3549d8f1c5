"""The data folder of `postroad dev`: a database, a key, a lock, and `dev.json` with addresses and credentials.

The folder has mode 0700 and each file 0600. The mode of an existing folder with other files is not changed, but the
files in it are still private. One process at a time serves a folder; operator commands may use it concurrently.
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
from urllib.parse import urlsplit

import msgspec

from postroad import config
from postroad.network import hostname
from postroad.storage.engine import backup_files

PRIVATE_FOLDER: Final = 0o700
KEY_BYTES: Final = 48
# Defaults for development; the environment overrides them.
DEV_DEFAULTS: Final = {
    "POSTROAD_DOMAINS__REQUIRE_VERIFIED": "false",
    "POSTROAD_DELIVERY__HOSTNAME": hostname.DEVELOPMENT,
    "POSTROAD_DOMAINS__SPF": f"a:{hostname.DEVELOPMENT}",
    # Domains in development may not exist: do not query DNS for them.
    "POSTROAD_DOMAINS__CHECK_HOURS": "0",
    # A host for development has no name, no addresses and no certificate to check.
    "POSTROAD_TESTING__HOURLY_CHECKS": "false",
    "POSTROAD_WARMUP__ENABLED": "false",
    # The disk of a workstation is often almost full.
    "POSTROAD_LIMITS__MIN_FREE_MEGABYTES": "0",
    # No load balancer waits for it: Ctrl-C stops at once.
    "POSTROAD_HTTP__DRAIN_SECONDS": "0",
    "POSTROAD_LOGS__FORMAT": "console",
    # Loopback has no certificate and needs none.
    "POSTROAD_SUBMISSION__AUTH_WITHOUT_TLS": "true",
    # Ten attempts, as in production, but within a minute.
    "POSTROAD_DELIVERY__RETRY_SECONDS": "2,3,5,5,5,5,5,5,5",
    "POSTROAD_TESTING__POLL_MILLISECONDS": "50",
    # Bounces can be tested repeatedly, and cannot suspend the account.
    "POSTROAD_BOUNCE_GUARD__ENABLED": "false",
    "POSTROAD_TESTING__SUPPRESS": "false",
    # Endpoints on this machine without a certificate; seven attempts within a minute.
    "POSTROAD_WEBHOOKS__ALLOW_INSECURE": "true",
    "POSTROAD_WEBHOOKS__RETRY_SECONDS": "1,2,3,5,8,13",
}


class FolderError(Exception):
    """The folder cannot be used; the message has the reason."""


class Smtp(msgspec.Struct, frozen=True, kw_only=True):
    """The address of the SMTP listener, and a credential with its password."""

    # Filled in when the listener is bound.
    host: str = ""
    port: int = 0
    username: str
    password: str


class Listener(msgspec.Struct, frozen=True):
    host: str
    port: int


class Login(msgspec.Struct, frozen=True):
    email: str
    password: str


class DevInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The contents of `dev.json`."""

    base_url: str
    smtp: Smtp
    api_key: str
    login: Login
    domain: str
    template: str
    # Filled in when they listen.
    sink: Listener | None = None
    inbound: Listener | None = None


@dataclass(frozen=True, slots=True)
class DataFolder:
    """A data folder, which may not exist yet."""

    path: Path

    @property
    def database(self) -> Path:
        return self.path / "postroad.sqlite"

    @property
    def key(self) -> Path:
        """The installation key; its presence identifies a data folder."""
        return self.path / "secret.key"

    @property
    def info_file(self) -> Path:
        return self.path / "dev.json"

    @property
    def _backup(self) -> Path:
        return self.path / "dev.json.before"

    @property
    def _lock(self) -> Path:
        return self.path / "lock"

    def prepare(self) -> None:
        """Create the folder, its key and an empty database file, if missing."""
        try:
            if not self.path.exists() or self.key.exists() or not any(self.path.iterdir()):
                self.path.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
                self.path.chmod(PRIVATE_FOLDER)
                # The folder is often inside a repository and must not be committed.
                write_once(self.path / ".gitignore", "*\n")
            write_once(self._lock, "")
            # SQLite gives its WAL the mode of the database file.
            write_once(self.database, "")
            write_once(self.key, secrets.token_urlsafe(KEY_BYTES) + "\n")
        except OSError as problem:
            raise FolderError(f"{self.path} cannot be used as a data folder: {problem.strerror}") from None

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the folder for one service; the system releases the lock when the process ends."""
        with self._lock.open("r") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise FolderError(
                    f"{self.path} is in use by another 'postroad dev'; stop it, or choose another folder with --data"
                ) from None
            yield

    @property
    def _database_url(self) -> str:
        return f"sqlite:///{self.database.absolute()}"

    def owns(self, settings: config.Settings) -> bool:
        """Whether these settings use the database of this folder."""
        return self.key.exists() and settings.database.url == self._database_url

    def settings(self, *, environment: Mapping[str, str], listen: Mapping[str, str] | None = None) -> config.Settings:
        """The settings of a development installation. The location of its data is fixed.

        `listen` has the listen addresses by section; without it they are those of `dev.json`.
        """
        if not self.key.exists():
            msg = f"{self.path} is not a data folder of 'postroad dev'; start 'postroad dev --data {self.path}' first"
            raise FolderError(msg)
        fixed: dict[str, Mapping[str, object]] = {
            "database": {"url": self._database_url, "migrate_at_start": True},
            "security": {"installation_key": "", "installation_key_file": str(self.key.absolute())},
            **{section: {"listen": where} for section, where in (listen or {}).items()},
        }
        defaults = {**DEV_DEFAULTS, **_listen_variables(_read(self.info_file))}
        return config.load(environment={**defaults, **environment}, overrides=fixed)

    @contextlib.contextmanager
    def previous_info(self) -> Iterator[DevInfo | None]:
        """The `dev.json` of the previous start; None if it is missing or damaged.

        It is moved away meanwhile: a readable `dev.json` always belongs to a running service.
        """
        try:
            if self.info_file.exists():
                self.info_file.replace(self._backup)
            yield _read(self._backup)
        finally:
            if self._backup.exists():
                self._backup.replace(self.info_file)

    def write_info(self, info: DevInfo) -> None:
        text = msgspec.json.format(msgspec.json.encode(info), indent=2).decode() + "\n"
        _write_new(self.info_file, text).replace(self.info_file)
        self._backup.unlink(missing_ok=True)


def _listen_variables(info: DevInfo | None) -> dict[str, str]:
    """Where the service of a `dev.json` listens, as variables; a public URL does not tell."""
    if info is None or not info.smtp.port:
        return {}
    found = {"POSTROAD_SUBMISSION__LISTEN": str(config.Endpoint(info.smtp.host, info.smtp.port))}
    if info.inbound is not None:
        found["POSTROAD_INBOUND__LISTEN"] = str(config.Endpoint(info.inbound.host, info.inbound.port))
    url = urlsplit(info.base_url)
    if url.scheme == "http" and url.port:
        found["POSTROAD_HTTP__LISTEN"] = url.netloc
    return found


def _read(path: Path) -> DevInfo | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=DevInfo)
    except (OSError, msgspec.DecodeError):
        return None


def write_once(path: Path, text: str) -> None:
    """Create a private file atomically, unless it exists."""
    if not path.exists():
        new = _write_new(path, text)
        with contextlib.suppress(FileExistsError):
            path.hardlink_to(new)
        new.unlink()


def _write_new(path: Path, text: str) -> Path:
    """Create a private temporary file next to the path."""
    descriptor, name = tempfile.mkstemp(prefix=f"{path.name}.", dir=path.parent)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        backup_files.inherit(descriptor, path)
        file.write(text)
    return Path(name)
