"""From a `database.url` to a store that is ready for use."""

from pathlib import Path
from urllib.parse import urlsplit

from postroad import config
from postroad.storage.engine import migrations, sqlite, store
from postroad.telemetry import logs

POSTGRES_SCHEMES = ("postgresql", "postgres")


def is_postgres(url: str) -> bool:
    return url.partition(":")[0] in POSTGRES_SCHEMES


async def open_store(url: str, *, connections: int = 10) -> store.Store:
    """Open the store behind a URL without touching its schema."""
    if is_postgres(url):
        from postroad.storage.engine import postgres  # noqa: PLC0415 - a command on SQLite need not wait for asyncpg

        return await postgres.connect(url, connections=connections)
    scheme = urlsplit(url).scheme
    if scheme == "sqlite":
        check_folder(url)
        return sqlite.SqliteStore(sqlite_path(url))
    msg = f"database.url: {scheme!r} is not supported; use sqlite:///path/to/file.db or postgresql://host/name"
    raise ValueError(msg)


def sqlite_path(url: str) -> Path:
    """`sqlite:///relative.db` and `sqlite:////absolute.db`, as in SQLAlchemy."""
    path = url.removeprefix("sqlite:///")
    if path == url or not path:
        msg = f"database.url: {url!r} names no file; use sqlite:///path/to/file.db"
        raise ValueError(msg)
    return Path(path)


def exists(url: str) -> bool:
    """Whether there is a database to open; a server has to be asked, so it counts as one."""
    return not url.startswith("sqlite:") or sqlite_path(url).exists()


def sqlite_folder(url: str) -> str | None:
    """The folder of the SQLite file; None for another engine."""
    return str(sqlite_path(url).absolute().parent) if url.startswith("sqlite:///") else None


def check_folder(url: str) -> None:
    """Raise ConfigError if the folder of the SQLite file does not exist: SQLite says only that it cannot open it."""
    folder = sqlite_folder(url)
    if folder is not None and not Path(folder).is_dir():
        msg = f"database.url: the folder {folder} does not exist; create it, for the user of the service"
        raise config.ConfigError(msg)


async def open_current(
    url: str, *, connections: int = 10, migrate: bool, log: logs.Logger | None = None
) -> store.Store:
    """Open a store and require the schema of this version, migrating it when allowed, with a line in the log."""
    opened = await open_store(url, connections=connections)
    try:
        if migrate:
            applied = await migrations.apply(opened)
            if log and applied.migrations:
                versions = {"from": applied.version_before, "to": applied.version}
                log.info("schema_migrated", **versions, seconds=round(applied.seconds, 3))
        await migrations.require_current(opened)
    except BaseException:
        await opened.close()
        raise
    return opened
