"""`postroad dev`: everything in one command, without configuration, for one developer on one machine."""

import os
import shlex
import sys
from pathlib import Path

import click
import msgspec
import uvloop

from postroad import config, roles
from postroad.cli import command, data_folder, development
from postroad.services import context as services_context
from postroad.telemetry import logs

# How somebody on this machine reaches a service that listens everywhere.
REACHED_AT = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - a look-up, not an address to listen on

WELCOME = """
Postroad is running for development: {base_url}   (Ctrl-C stops it)

Send an email:

  curl {base_url}/emails \\
    -H 'Authorization: Bearer {api_key}' \\
    -H 'Content-Type: application/json' \\
    -H "Idempotency-Key: $(date +%s)" \\
    -d '{{"from": "hello@{domain}", "to": "you@example.net", "template": "{template}", "variables": {{"name": "you"}}}}'

Read its status, with the id from the answer:

  curl -u '{smtp_username}:{smtp_password}' {base_url}/emails/ID

Login:          {login_email}  {login_password}
Documentation:  {base_url}/docs
Operate it:     {program} account list --data {data}
All of this is in {handover}.
"""


def endpoint(_ctx: click.Context, _parameter: click.Parameter, value: str) -> str:
    """Refuse what is no address where click expects it: before anything starts."""
    try:
        return str(config.endpoint(value, name="--http"))
    except config.ConfigError as problem:
        raise click.BadParameter(str(problem).removeprefix("--http: ")) from None


@click.command("dev")
@click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(".postroad"),
    show_default=True,
    metavar="DIR",
    help="Where the database, the key and dev.json live; made when missing.",
)
@click.option(
    "--http",
    callback=endpoint,
    default="127.0.0.1:8025",
    show_default=True,
    metavar="HOST:PORT",
    help="Where to listen; port 0 takes a free one.",
)
def dev(data: Path, http: str) -> None:
    """Run everything on this machine. It needs no configuration and has a demo account."""
    folder = data_folder.DataFolder(data)
    with command.plain_errors():
        folder.prepare()
        with folder.locked(), folder.last_handover() as before:
            settings = folder.settings(environment=os.environ, http={"listen": http})
            log = logs.configure(form=settings.logs.format, level=settings.logs.level, stream=sys.stderr)
            with command.store_named(settings), command.address_chosen_by("--http"):
                uvloop.run(_run(folder, before, settings=settings, log=log))


async def _run(
    folder: data_folder.DataFolder,
    before: data_folder.Handover | None,
    *,
    settings: config.Settings,
    log: logs.Logger,
) -> None:
    prepared: list[data_folder.Handover] = []

    async def prepare(context: services_context.Context) -> None:
        prepared.append(await development.prepare(context, before))

    def announce(addresses: roles.Addresses) -> None:
        base_url = settings.http.base_url or _reachable(addresses["http"])
        handover = msgspec.structs.replace(prepared[0], base_url=base_url)
        folder.write_handover(handover)
        click.echo(_welcome(folder, handover))

    await roles.run(settings, list(roles.ROLES), log=log, prepare=prepare, announce=announce)


def _reachable(where: config.Endpoint) -> str:
    return f"http://{config.Endpoint(REACHED_AT.get(where.host, where.host), where.port)}"


def _welcome(folder: data_folder.DataFolder, handover: data_folder.Handover) -> str:
    return WELCOME.format(
        base_url=handover.base_url,
        api_key=handover.api_key,
        domain=handover.domain,
        template=handover.template,
        smtp_username=handover.smtp.username,
        smtp_password=handover.smtp.password,
        login_email=handover.login.email,
        login_password=handover.login.password,
        program=_program(),
        data=shlex.quote(str(folder.path)),
        handover=folder.handover,
    )


def _program() -> str:
    """How this program was called, when that can be pasted."""
    return shlex.quote(sys.argv[0]) if Path(sys.argv[0]).name == "postroad" else "postroad"
