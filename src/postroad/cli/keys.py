"""`postroad key`: replace the installation key."""

from pathlib import Path

import click
import msgspec

from postroad import config
from postroad.cli import command, key_files, output
from postroad.roles import composition
from postroad.services.auth import installation_keys, key_check, key_replacement
from postroad.storage import open_store


@click.command("rotate", cls=command.SettingsCommand)
@click.option("--new-key", type=command.FILE, metavar="FILE", help="File with the new key. Default: generate one.")
async def rotate(settings: config.Settings, new_key: Path | None) -> output.Report:
    """Replace the installation key and re-encrypt every stored secret."""
    if not settings.security.secret_key_file:
        raise config.ConfigError(
            "security.secret_key_file: must name the file of the installation key, which is replaced; write the key of "
            "security.secret_key or security.secret_key_command into a file first"
        )
    file = key_files.KeyFile(Path(settings.security.secret_key_file))
    if file.new.exists() and await _fits(settings, file.new):
        # A rotation stopped after its transaction.
        file.replace()
        return _report(file, "The interrupted rotation is complete", secrets=None)
    text = None if new_key is None else _key(settings, new_key).decode()
    async with composition.open_context(settings) as context:
        file.stage(text)
        count = await key_replacement.rotate(
            context, old=config.secret_key(settings.security), new=_key(settings, file.new)
        )
    file.replace()
    return _report(file, f"The installation key is replaced, and {count} secrets are re-encrypted", secrets=count)


def _key(settings: config.Settings, file: Path) -> bytes:
    """The key in a file, which must be a strong one."""
    return config.secret_key(msgspec.structs.replace(settings.security, secret_key="", secret_key_file=str(file)))


async def _fits(settings: config.Settings, file: Path) -> bool:
    """Whether the database is encrypted with the key in a file already."""
    keys = installation_keys.Keys.derive(_key(settings, file))
    database = await open_store.open_current(settings.database.url, connections=1, migrate=False)
    try:
        async with database.reading() as tx:
            return await key_check.state(tx, keys) is key_check.KeyState.FITS
    finally:
        await database.close()


def _report(file: key_files.KeyFile, done: str, *, secrets: int | None) -> output.Report:
    text = (
        f"{done}. Copy {file.path} to every other host, then restart all processes now: until then they cannot sign "
        f"mail or webhooks. {file.previous} has the old key, which backups from before need; keep it as long as those."
    )
    data = {"key_file": str(file.path), "previous_key_file": str(file.previous), "secrets": secrets}
    return output.Report(data=data, text=text)
