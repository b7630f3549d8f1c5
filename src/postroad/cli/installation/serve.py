"""`postroad serve`: the service in production."""

import functools
import gc
import os
import sys
from pathlib import Path
from typing import Final

import click
import uvloop

from postroad import config, roles
from postroad import context as services_context
from postroad.cli.framework import command, server_command
from postroad.network import listener, service_manager
from postroad.roles import frontends as roles_frontends
from postroad.roles import listeners, service, supervisor
from postroad.services.operations import certificates
from postroad.services.queue import holds
from postroad.telemetry import logs

# New objects between two garbage collections; the default is 700. Measured: about 3 % less CPU per send.
GC_THRESHOLD: Final = 20_000
# How long a thread that is busy keeps the interpreter lock while others wait. A request takes it dozens of times, after
# each wait for the network, a thread or the database: with the default of 5 ms it took a second beside busy threads.
SWITCH_SECONDS: Final = 0.0005


@click.command("serve")
@click.option(
    "--config", "file", type=command.FILE, metavar="FILE", help=f"Configuration file. {server_command.CONFIG_TEXT}"
)
@click.option(
    "--role",
    "names",
    type=click.Choice(list(service.ROLES)),
    multiple=True,
    help="Role of this process; repeatable. Default: all roles.",
)
@click.option("--hold-delivery", is_flag=True, help="Hold all mail until 'postroad queue release'.")
def serve(*, file: Path | None, names: tuple[str, ...], hold_delivery: bool) -> None:
    """Run the service until SIGTERM or Ctrl-C. Settings come from the file and POSTROAD_… variables.

    Roles: api (HTTP, dashboard), submission (mail over SMTP), delivery, inbound (bounces, complaints, reports and other
    mail that arrives), webhooks, and maintenance (cleanup, DNS checks, certificates, notices). They meet only in the
    database. SIGTERM stops gracefully, SIGHUP reloads the settings. The log goes to stderr, one JSON object per line.
    """
    with command.report_errors():
        file = command.settings_file(file)
        load = functools.partial(config.load, file, environment=os.environ)
        settings = load()
        config.installation_key(settings.security)
        config.check_secret_files(settings)
        chosen = list(dict.fromkeys(names)) or list(service.ROLES)
        if "delivery" in chosen:
            config.check_upstream_files(settings.upstreams)
        log = logs.configure(form=settings.logs.format, level=settings.logs.level, stream=sys.stderr)
        expired = certificates.file_warnings(settings, now=services_context.system_clock())
        for warning in (*config.warnings(settings, file), *expired):
            log.warning("unsafe_setting", detail=warning)
        supervisor.raise_limit(settings, log=log)
        tune_interpreter()
        with command.name_store_on_error(settings), command.name_listen_option():
            inherited = listeners.find_inherited(settings, _inherited_sockets())
            frontends = roles_frontends.start(settings, chosen, inherited=inherited, run=uvloop.run, load=load, log=log)
            prepare = _hold if hold_delivery else None
            running = service.run(
                settings,
                chosen,
                frontends=frontends,
                inherited=inherited,
                prepare=prepare,
                load=load,
                log=log,
                notify=functools.partial(service_manager.notify, os.environ),
            )
            uvloop.run(running)


async def _hold(context: services_context.Context) -> None:
    """Hold all mail before the engine starts; the hold survives restarts, until the operator releases it."""
    await holds.hold(context, reason="started with --hold-delivery")


def _inherited_sockets() -> listener.BoundSockets:
    try:
        return service_manager.inherited_sockets(os.environ, process_id=os.getpid())
    except (OSError, ValueError) as problem:
        raise roles.StartError(f"LISTEN_FDS: the service manager passed no sockets: {problem}") from problem


def tune_interpreter() -> None:
    """Exclude imported objects from garbage collection, collect less often, and switch threads more often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(GC_THRESHOLD, *gc.get_threshold()[1:])
    sys.setswitchinterval(SWITCH_SECONDS)
