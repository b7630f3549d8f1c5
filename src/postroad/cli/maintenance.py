"""`postroad migrate`, `verify` and `check-config`: commands for an installation as a whole."""

import dataclasses
from typing import Final

import click

from postroad import config
from postroad.cli import command, output, redaction
from postroad.services import context as services_context
from postroad.services.certificates import listener_certificates
from postroad.services.checks import connections
from postroad.services.maintenance import consistency as services_consistency
from postroad.storage import migrations, open_store

# What `verify` counts: one, and several.
_NAMES: Final = {
    "accounts": ("account", "accounts"),
    "messages": ("message", "messages"),
    "recipients": ("recipient", "recipients"),
    "ledger_entries": ("ledger entry", "ledger entries"),
    "idempotency_keys": ("idempotency key", "idempotency keys"),
}


@click.command("migrate", cls=command.SettingsCommand)
@click.option("--check", is_flag=True, help="Change nothing; exit with 0 if up to date, 1 if pending, 2 if too new.")
async def migrate(settings: config.Settings, *, check: bool) -> output.Report:
    """Migrate the database schema to this version."""
    if check and not open_store.exists(settings.database.url):
        return _pending(0, migrations.known("sqlite"))
    database = await open_store.open_store(settings.database.url, connections=1)
    try:
        if check:
            return _check(await migrations.state_of(database))
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
    """What `migrate` would do."""
    if state.is_too_new:
        text = f"The schema is at version {state.version} and does not work with this version: use a newer Postroad."
        return output.Report(data={"version": state.version, "pending": []}, text=text, exit_code=2)
    if state.pending:
        return _pending(state.version, state.pending)
    return output.Report(data={"version": state.version, "pending": []}, text="The schema is up to date.")


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
    report = await services_consistency.run(context)
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
    config.secret_key(settings.security)
    config.check_secret_files(settings)
    for listener in config.LISTENERS:
        listener_certificates.load(settings, listener)
    config.check_upstream_files(settings.upstreams)
    open_store.check_folder(settings.database.url)
    chosen = click.get_current_context().params
    file = None if chosen["data"] else command.settings_file(chosen["config"])
    warnings = [
        *config.warnings(settings, file),
        *listener_certificates.warnings(settings, now=services_context.system_clock()),
        *connections.host_warnings(settings),
    ]
    tables = redaction.settings(settings)
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
