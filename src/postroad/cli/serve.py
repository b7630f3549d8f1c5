"""`postroad serve`: the service in production."""

import os
import sys
from pathlib import Path

import click
import uvloop

from postroad import config
from postroad.cli import command, gc_tuning
from postroad.roles import file_limit, service
from postroad.roles import frontends as roles_frontends
from postroad.services import context as services_context
from postroad.services.queue import holds
from postroad.telemetry import logs


@click.command("serve")
@click.option("--config", "file", type=command.FILE, metavar="FILE", help="Configuration file.")
@click.option(
    "--role",
    "names",
    type=click.Choice(list(service.ROLES)),
    multiple=True,
    help="Role of this process; repeatable. Default: all roles.",
)
@click.option("--hold-delivery", is_flag=True, help="Hold all mail until 'postroad queue release'.")
def serve(*, file: Path | None, names: tuple[str, ...], hold_delivery: bool) -> None:
    """Run the service until SIGTERM or Ctrl-C. Settings come from the file and POSTROAD_… variables."""
    with command.report_errors():
        settings = config.load(file, environment=os.environ)
        config.secret_key(settings.security)
        config.check_keys(settings)
        log = logs.configure(form=settings.logs.format, level=settings.logs.level, stream=sys.stderr)
        for warning in config.warnings(settings, file):
            log.warning("unsafe_setting", detail=warning)
        file_limit.raise_limit(settings, log=log)
        gc_tuning.tune_gc()
        with command.name_store_on_error(settings), command.name_listen_option():
            chosen = list(dict.fromkeys(names)) or list(service.ROLES)
            frontends = roles_frontends.start(settings, chosen, run=uvloop.run, log=log)
            prepare = _hold if hold_delivery else None
            uvloop.run(service.run(settings, chosen, frontends=frontends, prepare=prepare, log=log))


async def _hold(context: services_context.Context) -> None:
    """Hold all mail before the engine starts; it stays held over restarts, until the operator releases it."""
    await holds.hold(context, reason="started with --hold-delivery")
