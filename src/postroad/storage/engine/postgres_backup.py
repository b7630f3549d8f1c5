"""Backup and restore of a PostgreSQL database with its own programs, `pg_dump` and `pg_restore`.

They must be at least as new as the server. The password is in their environment, not in their arguments, which every
user of the host can read.
"""

import asyncio
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import unquote

import asyncpg
import msgspec

from postroad.storage.engine import backup_files

CONNECT_SECONDS: Final = 10
_PASSWORD_PARAMETER: Final = re.compile(r"(?<=[?&])password=([^&]*)&?")
_ERROR_CHARACTERS: Final = 500
# Where a restore keeps what was in the database before; no backup contains it.
_ASIDE: Final = "before_restore_"


class Target(msgspec.Struct, frozen=True):
    """A database for the programs: its URL without the password, and the environment with it."""

    url: str
    environment: Mapping[str, str]

    @classmethod
    def of(cls, url: str) -> "Target":
        """The target behind a database URL, whose password extends to the last `@`."""
        scheme, _, rest = url.partition("://")
        user_info, at, host = rest.rpartition("@")
        user, _, password = user_info.partition(":")
        if parameter := _PASSWORD_PARAMETER.search(host):
            password = parameter[1]
        plain = _PASSWORD_PARAMETER.sub("", host).rstrip("?&")
        return cls(f"{scheme}://{user}{at}{plain}", {"PGPASSWORD": unquote(password)} if password else {})


def dump_command(target: Target, file: Path) -> list[str]:
    exclude = f"--exclude-schema={_ASIDE}*"
    return ["pg_dump", "--format=custom", "--no-owner", exclude, f"--file={file}", f"--dbname={target.url}"]


def restore_command(target: Target, file: Path) -> list[str]:
    options = ("--single-transaction", "--exit-on-error", "--no-owner")
    return ["pg_restore", *options, f"--dbname={target.url}", str(file)]


def is_installed() -> bool:
    return shutil.which("pg_dump") is not None and shutil.which("pg_restore") is not None


async def dump(target: Target, file: Path) -> None:
    """Write a backup and read it once."""
    await _run(dump_command(target, file), target.environment)
    await verify(file)


async def verify(file: Path) -> None:
    """Read all of an archive, and check that it is one of Postroad."""
    listed = await _run(["pg_restore", "--list", str(file)], {})
    if not re.search(r" TABLE DATA \S+ schema_migrations ", listed):
        raise backup_files.BackupError(f"{file} is not a backup of Postroad: tables are missing")
    await _run(["pg_restore", f"--file={os.devnull}", str(file)], {})


async def restore(target: Target, file: Path) -> None:
    await _run(restore_command(target, file), target.environment)


async def is_empty(url: str) -> bool:
    async with _Session(url) as session:
        has_accounts = await session.fetchval("SELECT to_regclass('accounts') IS NOT NULL")
        return not (has_accounts and await session.fetchval("SELECT EXISTS (SELECT 1 FROM accounts)"))


async def is_in_use(url: str) -> bool:
    """Whether a service or command is connected. Sessions of other users are not visible to everybody."""
    async with _Session(url) as session:
        sessions = await session.fetchval(
            "SELECT COUNT(*) FROM pg_stat_activity"
            " WHERE datname = current_database() AND application_name = 'postroad' AND pid <> pg_backend_pid()"
        )
        return bool(sessions)


async def move_aside(url: str, *, stamp: str) -> str | None:
    """Rename the schema of the database and create an empty one; returns the new name, None if it has no tables."""
    async with _Session(url) as session:
        if not await session.fetchval("SELECT to_regclass('schema_migrations') IS NOT NULL"):
            return None
        schema, aside = await session.fetchval("SELECT quote_ident(current_schema())"), f"{_ASIDE}{stamp}"
        async with session.transaction():
            await session.execute(f"ALTER SCHEMA {schema} RENAME TO {aside}")
            await session.execute(f"CREATE SCHEMA {schema}")
        return aside


async def move_back(url: str, aside: str) -> None:
    """Undo `move_aside` after a restore that failed, and left nothing."""
    async with _Session(url) as session:
        schema = await session.fetchval("SELECT quote_ident(current_schema())")
        async with session.transaction():
            await session.execute(f"DROP SCHEMA {schema}")
            await session.execute(f"ALTER SCHEMA {aside} RENAME TO {schema}")


class _Session:
    """A connection that does not count as a service."""

    def __init__(self, url: str) -> None:
        self._url = url

    async def __aenter__(self) -> asyncpg.Connection:
        try:
            self._connection = await asyncpg.connect(
                self._url, timeout=CONNECT_SECONDS, server_settings={"application_name": "postroad restore"}
            )
        except (OSError, TimeoutError, asyncpg.PostgresError) as problem:
            raise backup_files.BackupError(f"the database cannot be reached: {problem}") from problem
        return self._connection

    async def __aexit__(self, *_: object) -> None:
        await self._connection.close()


async def _run(command: Sequence[str], environment: Mapping[str, str]) -> str:
    process = await asyncio.create_subprocess_exec(
        *command,
        env={**os.environ, **environment},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, problem = await process.communicate()
    if process.returncode:
        said = " ".join(problem.decode(errors="replace").split())[:_ERROR_CHARACTERS]
        raise backup_files.BackupError(f"{command[0]} failed: {said}")
    return output.decode(errors="replace")
