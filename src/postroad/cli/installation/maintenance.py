"""`postroad migrate`, `verify`, `check-config`, `certificate` and `upstream`: an installation as a whole."""

import dataclasses
import os
from pathlib import Path
from typing import Final

import click
import msgspec

from postroad import build_version, config
from postroad import context as services_context
from postroad.cli.framework import command, output
from postroad.config import changes
from postroad.delivery import upstream_probe
from postroad.model.units import times
from postroad.services.operations import certificates
from postroad.services.operations import operator_jobs as services_consistency
from postroad.services.operations.checks import connections
from postroad.storage.engine import migrations, open_store, store
from postroad.storage.operations import processes
from postroad.telemetry import logs

# What `verify` counts: one, and several.
_NAMES: Final = {
    "accounts": ("account", "accounts"),
    "messages": ("message", "messages"),
    "recipients": ("recipient", "recipients"),
    "ledger_entries": ("ledger entry", "ledger entries"),
    "idempotency_keys": ("idempotency key", "idempotency keys"),
}


class MigrateCommand(command.SettingsCommand):
    """A command that names all settings that no longer exist, when it only checks."""

    def load(self, ctx: click.Context, *, data: Path | None, file: Path | None) -> config.Settings:
        """The settings, as far as this version knows them."""
        return command.load_settings(data=data, file=file, is_upgrade=ctx.params["check"])


@click.command("migrate", cls=MigrateCommand)
@click.option(
    "--check",
    is_flag=True,
    help="Change nothing; exit with 0 if up to date, 1 if there is something to do, 2 if too new.",
)
async def migrate(settings: config.Settings, *, check: bool) -> output.Report:
    """Migrate the database schema to this version.

    The service does so at start, unless database.migrate_at_start is false.
    With --check, lists what would be applied and what you must do.
    """
    if check and not open_store.exists(settings.database.url):
        return _with_changes(_pending(0, migrations.known("sqlite")), None)
    database = await open_store.open_store(settings.database.url, connections=1)
    try:
        if check:
            state = await migrations.state_of(database)
            return _check(state) if state.is_too_new else _with_changes(_check(state), await _since(database, state))
        applied = await migrations.apply(database)
    finally:
        await database.close()
    data = {"from": applied.version_before, "to": applied.version, "applied": _listed(applied.migrations)}
    if not applied.migrations:
        return output.Report(data=data, text="The schema is up to date.")
    text = (
        f"Migrated the schema from version {applied.version_before} to {applied.version} in {applied.seconds:.1f} s."
        f"\nApplied: {_names(applied.migrations)}."
    )
    return output.Report(data={**data, "seconds": round(applied.seconds, 3)}, text=text)


def _check(state: migrations.State) -> output.Report:
    if state.moved_to is not None:
        text = f"The database is no longer in use, because {migrations.moved(state)}."
        return output.Report(data={"version": state.version, "pending": []}, text=text, exit_code=2)
    if state.is_too_new:
        text = f"The schema is at version {state.version} and does not work with this version: use a newer Postroad."
        return output.Report(data={"version": state.version, "pending": []}, text=text, exit_code=2)
    if state.pending:
        return _pending(state.version, state.pending)
    return output.Report(data={"version": state.version, "pending": []}, text="The schema is up to date.")


async def _since(database: store.Store, state: migrations.State) -> str | None:
    """The version that started last on this database; None if none has."""
    if state.version >= processes.LAST_VERSION_SCHEMA:
        async with database.reading() as tx:
            return await processes.last_version(tx)
    # From before versions were recorded.
    return changes.OLDEST if state.version else None


def _with_changes(report: output.Report, since: str | None) -> output.Report:
    """The same, and what the upgrade changes for this installation."""
    chosen = click.get_current_context().params
    file = None if chosen["data"] else command.settings_file(chosen["config"])
    version = build_version.current()
    given = config.names(file, environment=os.environ)
    found = changes.concerning(changes.shipped(), since=since, version=version, settings=given)
    data = {**report.data, "from": since, "to": version, "changes": [msgspec.to_builtins(change) for change in found]}
    lines = [report.text]
    if found:
        lines += ["", "What this upgrade changes for you:", *(f"- {change.sentence}" for change in found)]
    elif since not in (None, version):
        before = "an earlier version" if since == changes.OLDEST else since
        lines += ["", f"This upgrade, from {before} to {version}, changes nothing else for you."]
    # A start would refuse the settings file.
    is_refused = any(change.kind == changes.REMOVED for change in found)
    return output.Report(data=data, text="\n".join(lines), exit_code=report.exit_code or int(is_refused))


def _pending(version: int, pending: list[migrations.Migration]) -> output.Report:
    text = f"The schema is at version {version}. 'postroad migrate' would apply: {_names(pending)}."
    oldest = migrations.compatible_from(pending)
    # An empty database has no processes that could be in the way.
    if version:
        text += (
            f"\nProcesses that know schema version {oldest} or newer can keep running."
            if oldest <= version
            else "\nStop the processes of the older version on all hosts first: they do not work with the new schema."
        )
    data = {"version": version, "pending": _listed(pending), "compatible_from": oldest}
    return output.Report(data=data, text=text, exit_code=1)


def _names(listed: list[migrations.Migration]) -> str:
    return ", ".join(f"{migration.version:04d} {migration.name}" for migration in listed)


def _listed(listed: list[migrations.Migration]) -> list[dict[str, object]]:
    return [{"version": migration.version, "name": migration.name} for migration in listed]


@click.command("verify", cls=command.StoreCommand)
async def verify(context: services_context.Context) -> output.Report:
    """Check that stored sums, counts and statuses are consistent. The exit code is 1 if there are findings."""
    report = await services_consistency.check_consistency(context)
    counts = dataclasses.asdict(report.counts)
    findings = [dataclasses.asdict(finding) for finding in report.findings]
    hidden = set() if context.settings.credits.enabled else {"ledger_entries"}
    summary = ", ".join(
        f"{count} {_NAMES[name][0 if count == 1 else 1]}" for name, count in counts.items() if name not in hidden
    )
    lines = [f"{finding.check}: {finding.text}" for finding in report.findings]
    verdict = "no findings" if not findings else "1 finding" if len(findings) == 1 else f"{len(findings)} findings"
    text = "\n".join([*lines, f"Checked {summary}: {verdict}."])
    return output.Report(data={"counts": counts, "findings": findings}, text=text, exit_code=1 if findings else 0)


@click.command("check-config", cls=command.SettingsCommand)
async def check_config(settings: config.Settings) -> output.Report:
    """Validate the settings and print the effective values, with secrets masked. Unsafe ones are named first."""
    config.installation_key(settings.security)
    config.check_secret_files(settings)
    certificates.load(settings)
    config.check_upstream_files(settings.upstreams)
    open_store.check_folder(settings.database.url)
    chosen = click.get_current_context().params
    file = None if chosen["data"] else command.settings_file(chosen["config"])
    warnings = [
        *config.warnings(settings, file),
        *certificates.file_warnings(settings, now=services_context.system_clock()),
        *connections.host_warnings(settings),
    ]
    tables = command.masked_settings(settings)
    lines = [
        f"{name} = {output.literal(value)}"
        for section, table in tables.items()
        for name, value in (
            [(section, table)]
            if not isinstance(table, dict)
            else [(f"{section}.{key}", value) for key, value in table.items()]
        )
    ]
    source = [f"# File: {file}"] if file else []
    valid = "# The settings are valid."
    text = "\n".join([*source, *(f"# Warning: {warning}" for warning in warnings), *lines, valid])
    data = {"file": str(file) if file else None, "settings": tables, "warnings": warnings}
    return output.Report(data=data, text=text)


@click.command("list", cls=command.StoreCommand)
async def list_certificates(context: services_context.Context) -> output.Report:
    """List the certificates of the listeners, with the days left. The exit code is 1 if one is missing or expired."""
    found = await certificates.of_listeners(context)
    now = context.clock()
    rows = [
        (
            listener.listener,
            listener.source,
            ", ".join(listener.names) or None,
            _time(listener.expires_at),
            None if listener.expires_at is None else (listener.expires_at - now) // times.DAY,
            _time(listener.due_at),
            listener.problem or None,
        )
        for listener in found
    ]
    titles = ["listener", "source", "names", "expires", "days", "next order", "problem"]
    data = [
        {**msgspec.to_builtins(listener), "expires_at": _time(listener.expires_at), "due_at": _time(listener.due_at)}
        for listener in found
    ]
    is_bad = any(listener.expires_at is None or listener.expires_at <= now for listener in found)
    return output.Report(
        data={"certificates": data},
        text=output.table(titles, rows, empty="No listener uses TLS."),
        exit_code=1 if is_bad else 0,
    )


@click.command("renew", cls=command.StoreCommand)
async def renew_certificate(context: services_context.Context) -> output.Report:
    """Order the certificate of acme.names now, whether it is due or not. The service must be running."""
    if not context.settings.acme.names:
        raise config.ConfigError("acme.names: empty; list the host names of the certificate")
    result = await certificates.Renewer(context, logs.of_command()).renew(is_forced=True)
    names = list(context.settings.acme.names)
    if result is None:
        raise click.ClickException("Another process is ordering this certificate; see 'postroad certificate list'.")
    if result.error:
        raise click.ClickException(f"{result.error}. The next order is due at {times.to_wire(result.due_at)}.")
    return output.Report(
        data={"names": names, "expires_at": times.to_wire(result.expires_at)},
        text=f"Obtained a certificate for {', '.join(names)}; it expires at {times.to_wire(result.expires_at)}.",
    )


def _time(at: int | None) -> str | None:
    return None if not at else times.to_wire(at)


_PARAMETERS: Final[list[click.Parameter]] = [
    click.Argument(["name"]),
    click.Option(["--to"], metavar="ADDRESS", help="Send a test message to this address."),
    click.Option(["--from", "sender"], default="", metavar="ADDRESS", help="Its sender. Default: postmaster@HOSTNAME."),
]


@click.command("test", cls=command.SettingsCommand, params=_PARAMETERS)
async def try_upstream(settings: config.Settings, *, name: str, to: str | None, sender: str) -> output.Report:
    """Connect to an upstream and log in, and send a test message if an address is given.

    Exits with 1 if it cannot be used.
    """
    upstream = next((entry for entry in settings.upstreams if entry.name == name), None)
    if upstream is None:
        known = ", ".join(entry.name for entry in settings.upstreams) or "none"
        raise config.ConfigError(f"there is no upstream {name!r}; known: {known}")
    config.check_upstream_files([upstream])
    steps = await upstream_probe.run(settings, upstream, sender=sender, to=to)
    is_good = steps[-1].is_good
    lines = [f"{step.found} {step.advice}".rstrip() for step in steps]
    verdict = f"The upstream {name} works." if is_good else f"The upstream {name} cannot be used."
    return output.Report(
        data={
            "upstream": name,
            "ok": is_good,
            "steps": [{"ok": step.is_good, "found": step.found, "advice": step.advice} for step in steps],
        },
        text="\n".join([*lines, verdict]),
        exit_code=0 if is_good else 1,
    )
