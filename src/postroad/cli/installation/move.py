"""`postroad move`: from SQLite to PostgreSQL without losing a message, or sending one twice.

All of it is one transaction of PostgreSQL: the rows, their comparison with the file, and the hold on delivery. Until it
is committed, the database stays empty and the file is the installation. The file is locked all the while, and marked
just before that commit, so that at no time both can be started. When the host dies between the two, neither can: the
command is run again, and moves again or finds that everything is there.
"""

import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from postroad import config, errors
from postroad import context as services_context
from postroad.cli.framework import command, output, server_command
from postroad.keys import installation_keys, key_check
from postroad.roles import composition
from postroad.services.queue import holds
from postroad.storage.engine import (
    backup_files,
    migrations,
    open_store,
    postgres,
    postgres_backup,
    sqlite,
    sqlite_backup,
    store,
    table_copy,
)
from postroad.storage.operations import consistency

# How often progress is reported.
REPORT_SECONDS: Final = 5.0
FORCE: Final = "--force"
# If these are the same on both sides, no mail was accepted, attempted, received or removed since, and nobody who has
# unsubscribed or complained since would get mail again.
MAIL: Final = ("messages", "recipients", "suppressions", "unsubscribes", "received_messages")


@dataclass(frozen=True, slots=True)
class Source:
    """A SQLite file that nobody else can open, in a transaction, and what it contains."""

    file: Path
    tx: sqlite.SqliteTransaction
    tables: table_copy.Tables
    moved_to: str | None


@dataclass(frozen=True, slots=True)
class Moved:
    """What is the same on both sides: the rows of each table, and the findings of `postroad verify`."""

    rows: Mapping[str, int]
    findings: Sequence[str]


@click.command("move", cls=command.SettingsCommand)
@click.argument("file", type=command.FILE, metavar="FILE")
@click.option(
    "--back", is_flag=True, help="Undo the move, unless mail was accepted or sent since: FILE can be used again."
)
@click.option(
    FORCE, is_flag=True, help="With --back: undo it even then, or without PostgreSQL. Mail can be lost or sent twice."
)
async def move(settings: config.Settings, *, file: Path, back: bool, force: bool) -> output.Report:
    """Move all data from a SQLite FILE to PostgreSQL, and hold the delivery of all mail. Stop the service first.

    database.url names the PostgreSQL database, which must be empty. Every row is compared on both sides.
    If the command fails or is interrupted, nothing has changed: run it again.
    """
    if force and not back:
        raise click.UsageError(f"{FORCE} needs --back.")
    if not open_store.is_postgres(settings.database.url):
        raise config.ConfigError("database.url: not PostgreSQL; set it to the database to which FILE is moved")
    began = time.monotonic()
    with sqlite_backup.reported(file), sqlite_backup.locked(file) as connection:
        source = await _opened(settings, file, sqlite.SqliteTransaction(connection, sqlite.load_statements()))
        if not force:
            _check_address(source, command.masked_address(settings.database.url))
        if back:
            return await _move_back(settings, source, force=force)
        moved = await _move(settings, source)
    return _report(settings, file, moved, seconds=time.monotonic() - began)


async def _opened(settings: config.Settings, file: Path, tx: sqlite.SqliteTransaction) -> Source:
    _tell(f"Checking {file}.")
    sqlite_backup.check(tx.connection, file)
    known = migrations.known("sqlite")
    state = await migrations.read_state(tx, known)
    if state.version != known[-1].version:
        msg = f"{file} has schema version {state.version}, but this version needs {known[-1].version}"
        raise backup_files.BackupError(f"{msg}: migrate it with 'postroad migrate', or use a newer Postroad")
    keys = installation_keys.Keys.derive(config.installation_key(settings.security))
    if await key_check.state(tx, keys) is key_check.KeyState.WRONG:
        raise backup_files.BackupError(f"{file}: {key_check.WRONG_KEY}")
    return Source(file, tx, await table_copy.tables(tx), state.moved_to)


def _check_address(source: Source, address: str) -> None:
    """A second copy elsewhere would be out of date, and an empty database says nothing about the mail of another."""
    if source.moved_to not in {None, address}:
        msg = f"{source.file} was moved to {source.moved_to}; set database.url to that address"
        raise backup_files.BackupError(msg)


async def _move(settings: config.Settings, source: Source) -> Moved:
    url, address = settings.database.url, command.masked_address(settings.database.url)
    await _check_unused(url)
    if not await postgres_backup.is_empty(url):
        raise backup_files.BackupError(
            f"{source.file} was moved already; start the service on {address}"
            if source.moved_to is not None
            else f"{address} is not empty; move to an empty database"
        )
    findings = await _findings(source.tx)
    is_marked = False
    try:
        async with composition.open_context(settings) as context, _database(context).long_transaction() as tx:
            moved = await _copy(source, tx, findings)
            await holds.hold_moved(context, tx)
            await migrations.mark_moved(source.tx, address)
            sqlite_backup.commit(source.tx.connection)
            is_marked = True
    except (errors.PostroadError, store.ConstraintViolated, store.NotPermitted) as problem:
        if is_marked:
            msg = f"{address} did not confirm that {source.file} was moved; run the command again"
            raise backup_files.BackupError(msg) from problem
        # PostgreSQL adds details and hints on further lines, which may have the content of a row.
        reason = str(problem.__cause__ or problem).partition("\n")[0]
        raise backup_files.BackupError(f"nothing was moved to {address}: {reason}") from problem
    return moved


async def _copy(source: Source, tx: store.Transaction, findings: Sequence[str]) -> Moved:
    """Copy all rows, and compare what both sides have."""
    await tx.fetch("table_copy.lock")
    if await tx.fetch_one("table_copy.has_accounts") is not None:
        raise backup_files.BackupError("the database is no longer empty; nothing was moved")
    await table_copy.check_tables(source.tables, tx)
    total = sum(sqlite_backup.count(source.tx.connection, table) for table in source.tables)
    _tell(f"Copying {total:,} rows of {len(source.tables)} tables.")
    copied = await table_copy.replace(source.tx.connection, tx, source.tables, progress=_Progress(total))
    _tell("Comparing every row on both sides.")
    stored = await table_copy.summarize_target(tx, source.tables)
    if different := [table for table in copied if copied[table] != stored[table]]:
        raise backup_files.BackupError(f"nothing was moved: copied rows differ in {', '.join(different)}")
    _tell("Checking the consistency of the copy.")
    if await _findings(tx) != findings:
        raise backup_files.BackupError("nothing was moved: 'postroad verify' finds something else in the copy")
    return Moved({table: summary.rows for table, summary in copied.items()}, findings)


async def _move_back(settings: config.Settings, source: Source, *, force: bool) -> output.Report:
    if source.moved_to is None:
        raise backup_files.BackupError(f"{source.file} was not moved, and can be used")
    if not force and await _has_changed(settings, source):
        raise backup_files.BackupError(
            f"mail was accepted or sent since the move; with {FORCE}, what was accepted since is lost, "
            "and what was sent since is sent again"
        )
    await migrations.forget_move(source.tx)
    sqlite_backup.commit(source.tx.connection)
    text = (
        f"{source.file} can be used again: set database.url to it, and start the service.\n"
        "Never start Postroad with the copy in PostgreSQL; drop it before you move again."
    )
    return output.Report(data={"file": str(source.file.absolute()), "moved_back": True}, text=text)


async def _has_changed(settings: config.Settings, source: Source) -> bool:
    """Whether mail on PostgreSQL is not what it was when it was moved there."""
    await _check_unused(settings.database.url)
    if await postgres_backup.is_empty(settings.database.url):
        return False  # the transaction of the move was not committed
    mail = {table: source.tables[table] for table in MAIL}
    async with composition.open_context(settings) as context, _database(context).long_transaction() as tx:
        return await table_copy.summarize_target(tx, mail) != table_copy.summarize_source(source.tx.connection, mail)


async def _check_unused(url: str) -> None:
    if await postgres_backup.is_in_use(url):
        msg = f"{command.masked_address(url)} is in use; stop the service and every other command on it"
        raise backup_files.BackupError(msg)


def _database(context: services_context.Context) -> postgres.PostgresStore:
    assert isinstance(context.store, postgres.PostgresStore)  # noqa: S101 - as database.url says
    return context.store


async def _findings(tx: store.Transaction) -> list[str]:
    return sorted(f"{finding.check}: {finding.text}" for finding in await consistency.findings(tx))


class _Progress:
    """Says every few seconds how much is copied."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._due_at = time.monotonic() + REPORT_SECONDS

    def __call__(self, rows: int) -> None:
        if time.monotonic() >= self._due_at:
            self._due_at += REPORT_SECONDS
            _tell(f"Copied {rows:,} rows, {100 * rows // self._total} %.")


def _tell(text: str) -> None:
    click.echo(text, err=True)


def _report(settings: config.Settings, file: Path, moved: Moved, *, seconds: float) -> output.Report:
    address, option = command.masked_address(settings.database.url), server_command.installation_option()
    counted = ", ".join(f"{moved.rows[table]:,} in {table}" for table in sqlite_backup.COUNTED)
    total = sum(moved.rows.values())
    count = len(moved.findings)
    verdict = "no findings" if not count else f"{count} {'finding' if count == 1 else 'findings'}, as before"
    lines = [
        f"Moved {file} to {address}: {total:,} rows of {len(moved.rows)} tables in {seconds:.1f} s, each compared.",
        f"Rows: {counted}. Consistency: {verdict}.",
        f"The delivery of all mail is held, and Postroad refuses to start with {file}.",
        "Next:",
        f"  1. Set database.url to {address}; a password can be in a file: database.url_file",
        "  2. Start the service: mail is accepted, and none is delivered.",
        f"  3. Check it: postroad verify{option}, postroad queue list{option}",
        f"  4. Deliver: postroad queue release{option}",
        f"To go back instead of step 4, stop the service, and run: postroad move --back {shlex.quote(str(file))}",
    ]
    data = {
        "file": str(file.absolute()),
        "moved_to": address,
        "seconds": round(seconds, 3),
        "rows": moved.rows,
        "findings": moved.findings,
    }
    return output.Report(data=data, text="\n".join(lines))
