"""`postroad backup` and `postroad restore`: a copy of the database, and a start from it with all mail held."""

import asyncio
import dataclasses
import shlex
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click
import msgspec

from postroad import config
from postroad.cli.framework import command, output, server_command
from postroad.roles import composition
from postroad.services.queue import holds
from postroad.storage.engine import backup_files, migrations, open_store, postgres_backup, sqlite_backup

KEY_NOTE: Final = (
    "The backup does not contain the installation key. Keep a copy of the key elsewhere: "
    "without it, DKIM keys and other secrets in the backup cannot be decrypted."
)
FORCE: Final = "--force"


@dataclass(frozen=True, slots=True)
class Restored:
    """Why all mail is held, how many recipients may have been delivered already, and where the old data is."""

    reason: str
    queued: int
    aside: str | None = None


@click.command("backup", cls=command.SettingsCommand)
@click.argument("file", type=command.FILE, metavar="FILE")
@click.option(FORCE, is_flag=True, help="Replace FILE if it exists.")
async def backup(settings: config.Settings, *, file: Path, force: bool) -> output.Report:
    """Write a verified backup of the database to FILE, while the service runs.

    It does not contain the installation key.
    """
    url, began = settings.database.url, time.monotonic()
    with backup_files.written(file, replace=force) as part:
        contents = await (_dump if open_store.is_postgres(url) else _copy)(url, part, file=file)
    return await asyncio.to_thread(_made, url, file, contents, seconds=time.monotonic() - began)


@click.command("restore", cls=command.SettingsCommand)
@click.argument("file", type=command.FILE, metavar="FILE")
@click.option(FORCE, is_flag=True, help="Replace a database that is not empty; the old one is kept.")
async def restore(settings: config.Settings, *, file: Path, force: bool) -> output.Report:
    """Restore a backup into the database, with the delivery of all mail held. Stop the service first."""
    config.installation_key(settings.security)
    is_postgres = open_store.is_postgres(settings.database.url)
    kind = await asyncio.to_thread(backup_files.kind_of, file)
    if (kind == "postgresql") != is_postgres:
        raise backup_files.BackupError(f"{file} is a backup of {kind}, and database.url names another engine")
    stamp = time.strftime("%Y%m%d%H%M%S", time.gmtime())
    restoring = _restore_postgres if is_postgres else _restore_sqlite
    restored = await restoring(settings, file, force=force, stamp=stamp)
    release = f"postroad queue release{server_command.installation_option()}"
    kept = f" What was there before is kept as {restored.aside}." if restored.aside else ""
    text = (
        f"Restored {file} to {command.masked_address(settings.database.url)}.{kept}\n"
        f"Delivery of all mail is held: {restored.reason}. "
        f"{restored.queued} queued recipients may have been delivered since.\n"
        "Next:\n"
        f"  1. Check it: postroad verify{server_command.installation_option()}\n"
        "  2. Start the service: mail is accepted, and none is delivered.\n"
        f"  3. See what may be a duplicate: {release} --list\n"
        "  4. Cancel what must not be sent twice: postroad queue cancel\n"
        f"  5. Deliver the rest: {release} --yes"
    )
    data = {"aside": restored.aside, "reason": restored.reason, "may_be_duplicates": restored.queued}
    return output.Report(data=data, text=text)


def _made(url: str, file: Path, contents: backup_files.Contents, *, seconds: float) -> output.Report:
    size = file.stat().st_size
    found = ", ".join(f"{number} in {table}" for table, number in contents.counts.items())
    lines = [
        f"Backup of {command.masked_address(url)}: {file}, {size} bytes, in {seconds:.1f} s; verified.",
        *([f"Rows: {found}; schema version {contents.schema_version}."] if found else []),
        KEY_NOTE,
    ]
    data = {
        "file": str(file.absolute()),
        "size": size,
        "seconds": round(seconds, 3),
        "schema_version": contents.schema_version or None,
        "counts": contents.counts,
    }
    return output.Report(data=data, text="\n".join(lines))


def _check_another(file: Path, database: Path) -> None:
    """A running service would go on with the file that was replaced, and lose what it accepts."""
    if file.exists() and file.samefile(database):
        raise backup_files.BackupError(f"{file} is the database itself; choose another name")


async def _copy(url: str, part: Path, *, file: Path) -> backup_files.Contents:
    source = open_store.sqlite_path(url)
    if not source.exists():
        raise backup_files.BackupError(f"there is no database at {source.absolute()}")
    _check_another(file, source)
    return await asyncio.to_thread(sqlite_backup.copy, source, part)


async def _dump(url: str, part: Path, *, file: Path) -> backup_files.Contents:
    target = postgres_backup.Target.of(url)
    if not postgres_backup.is_installed():
        wanted = shlex.join(postgres_backup.dump_command(target, file))
        raise backup_files.BackupError(f"pg_dump is not installed on this host; with PGPASSWORD set, run: {wanted}")
    await postgres_backup.dump(target, part)
    return backup_files.Contents()


async def _restore_sqlite(settings: config.Settings, file: Path, *, force: bool, stamp: str) -> Restored:
    contents = await asyncio.to_thread(sqlite_backup.verify, file)
    if contents.schema_version > (newest := migrations.known("sqlite")[-1].version):
        msg = f"{file} has schema version {contents.schema_version}, but this version knows only {newest}"
        raise backup_files.BackupError(f"{msg}: use a newer Postroad")
    target = open_store.sqlite_path(settings.database.url).absolute()
    if not target.exists():
        with backup_files.written(target, replace=False) as new:
            return await _copy_held(settings, file, new)
    if not force and not sqlite_backup.is_empty(target):
        raise _not_empty(settings)
    aside = target.with_name(f"{target.name}.before-restore-{stamp}")
    # Nobody else can open the old database from here on, nor the new one before it is complete.
    with sqlite_backup.locked(target), backup_files.written(target, replace=True) as new:
        restored = await _copy_held(settings, file, new)
        sqlite_backup.move_aside(target, aside)
    return dataclasses.replace(restored, aside=str(aside))


async def _copy_held(settings: config.Settings, file: Path, new: Path) -> Restored:
    await asyncio.to_thread(sqlite_backup.copy, file, new)
    restored = await _hold(settings, f"sqlite:///{new}")
    await asyncio.to_thread(sqlite_backup.fold_log, new)
    return restored


async def _restore_postgres(settings: config.Settings, file: Path, *, force: bool, stamp: str) -> Restored:
    url = settings.database.url
    target = postgres_backup.Target.of(url)
    if not postgres_backup.is_installed():
        wanted = shlex.join(postgres_backup.restore_command(target, file))
        msg = f"pg_restore is not installed on this host; with PGPASSWORD set, run on an empty database: {wanted}"
        raise backup_files.BackupError(f"{msg}; then start with 'postroad serve --hold-delivery'")
    await postgres_backup.verify(file)
    if await postgres_backup.is_in_use(url):
        raise backup_files.BackupError("the database is in use; stop the service and every other command on it")
    if not force and not await postgres_backup.is_empty(url):
        raise _not_empty(settings)
    aside = await postgres_backup.move_aside(url, stamp=stamp)
    try:
        await postgres_backup.restore(target, file)
    except BaseException:
        if aside:
            await postgres_backup.move_back(url, aside)
        raise
    return dataclasses.replace(await _hold(settings, url), aside=f"schema {aside}" if aside else None)


async def _hold(settings: config.Settings, url: str) -> Restored:
    """Migrate a restored database to this version, and hold all of its mail."""
    database = msgspec.structs.replace(settings.database, url=url, migrate_at_start=True)
    async with composition.open_context(msgspec.structs.replace(settings, database=database)) as context:
        hold = await holds.hold_restored(context)
        counts = await holds.queued_counts(context, hold)
    return Restored(hold.reason, sum(count.recipients for count in counts))


def _not_empty(settings: config.Settings) -> backup_files.BackupError:
    return backup_files.BackupError(
        f"{command.masked_address(settings.database.url)} is not empty; {FORCE} replaces it and keeps the old one"
    )
