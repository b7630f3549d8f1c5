"""`postroad dev`: the whole service for development, without configuration."""

import contextlib
import os
import shlex
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar
from urllib import parse

import click
import msgspec
import uvloop

from postroad import config, roles
from postroad import context as services_context
from postroad.cli.dev import demo_account
from postroad.cli.dev import sample_week as sample
from postroad.cli.framework import command, data_folder
from postroad.model.delivery import providers
from postroad.network import listener
from postroad.roles import listeners, service
from postroad.services.messages import dev_inbox
from postroad.simulator import mailbox
from postroad.telemetry import logs

Decorated = TypeVar("Decorated", bound=Callable[..., Any])
# The address for local clients of a service that listens on all addresses.
CLIENT_HOSTS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - not an address to listen on
# With the sample week, which shows what bounces do in production.
WITH_SAMPLE = {"POSTROAD_BOUNCE_GUARD__ENABLED": "true", "POSTROAD_TESTING__SUPPRESS": "true"}

WELCOME = """
Postroad is running for development: {base_url}   (Ctrl-C to stop)

Open the dashboard; the login is filled in:

  {base_url}/login#{login}

Send an email:

  curl {base_url}/emails \\
    -H 'Authorization: Bearer {api_key}' \\
    -H 'Content-Type: application/json' \\
    -H "Idempotency-Key: $(date +%s)-$$" \\
    -d '{{"from": "hello@{domain}", "to": "you@example.net", "template": "{template}", "variables": {{"name": "you"}}}}'

Get its status, with the id from the response:

  curl -H 'Authorization: Bearer {api_key}' {base_url}/emails/ID

Or send over SMTP, at {smtp_host}, port {smtp_port}, without TLS:

  curl smtp://{smtp} -u '{smtp_username}:{smtp_password}' \\
    --mail-from hello@{domain} --mail-rcpt you@example.net \\
    -H 'From: hello@{domain}' -H 'To: you@example.net' -H 'Subject: Hello' -F '=It works.'

A mailbox simulator on this machine receives all mail. The local part of a recipient decides the result: bounce@…,
blocked@…, defer@… (accepted at the third attempt), fail@…, slow@…, drop@… (disconnects); any other is delivered.
List the delivered mail:

  curl -H 'Authorization: Bearer {api_key}' {base_url}/v1/inbox

Receive mail: the route {route} takes it, and Received in the dashboard shows it:

  curl smtp://{inbound} --mail-from you@example.net --mail-rcpt support@in.{domain} \\
    -H 'From: you@example.net' -H 'To: support@in.{domain}' -H 'Subject: Help' -F '=It arrived.'

Receive signed webhooks for results and received mail (in another terminal):

  {program} webhook listen --data {data}

Login:          {login_email}  {login_password}
API reference:  {base_url}/docs
Administration: {program} account list --data {data}
Saved in {info}.
"""


def endpoint(_ctx: click.Context, parameter: click.Parameter, value: str) -> config.Endpoint:
    name = parameter.opts[0]
    try:
        return config.endpoint(value, name=name)
    except config.ConfigError as problem:
        raise click.BadParameter(str(problem).removeprefix(f"{name}: ")) from None


def _address_option(name: str, default: str, text: str) -> Callable[[Decorated], Decorated]:
    return click.option(
        name,
        callback=endpoint,
        default=default,
        show_default=True,
        metavar="HOST:PORT",
        help=f"{text}; port 0 chooses a free port.",
    )


@click.command("dev")
@click.option(
    "--data",
    type=command.FOLDER,
    default=Path(".postroad"),
    show_default=True,
    metavar="DIR",
    help="Folder for the database, the key and dev.json; created if missing.",
)
@_address_option("--http", "127.0.0.1:8025", "Listen address of the API and the dashboard")
@_address_option("--smtp", "127.0.0.1:2525", "Listen address for SMTP, without TLS")
@_address_option("--inbound", "127.0.0.1:0", "Listen address for mail that you receive")
@_address_option("--sink", "127.0.0.1:0", "Listen address of the mailbox simulator")
@click.option(
    "--sample-week",
    is_flag=True,
    help="Fill the demo account with a week of mail, once, and turn suppression and the bounce guard on.",
)
def dev(
    data: Path,
    http: config.Endpoint,
    smtp: config.Endpoint,
    inbound: config.Endpoint,
    sink: config.Endpoint,
    *,
    sample_week: bool,
) -> None:
    """Run the whole service for development, with a demo account and without configuration.

    All mail goes to a mailbox simulator on this machine; the part before the @ decides the result: bounce, blocked,
    defer, fail, slow, drop. The first start creates an account, a domain, a template, keys and a login; dev.json in the
    data folder has them. Delete the folder to start again.
    """
    folder = data_folder.DataFolder(data)
    with command.report_errors():
        folder.prepare()
        with folder.locked(), folder.previous_info() as before:
            listen = {"http": str(http), "submission": str(smtp), "inbound": str(inbound)}
            chosen = WITH_SAMPLE if sample_week else {}
            settings = folder.settings(environment={**chosen, **os.environ}, listen=listen)
            log = logs.configure(form=settings.logs.format, level=settings.logs.level, stream=sys.stderr)
            with (
                command.name_store_on_error(settings),
                command.name_listen_option("--http", submission="--smtp", inbound="--inbound"),
            ):
                settings, bound = bind_free_ports(settings)
                running = _run(
                    folder, before, settings=settings, bound=bound, sink=sink, with_sample=sample_week, log=log
                )
                uvloop.run(running)


async def _run(
    folder: data_folder.DataFolder,
    before: data_folder.DevInfo | None,
    *,
    settings: config.Settings,
    bound: Mapping[str, listener.BoundSockets],
    sink: config.Endpoint,
    with_sample: bool,
    log: logs.Logger,
) -> None:
    prepared: list[data_folder.DevInfo] = []
    base_url = client_url(settings)
    data = shlex.quote(str(folder.path))
    mail = dev_inbox.Inbox(
        clock=services_context.system_clock,
        entropy=os.urandom,
        command=lambda words: f"{_program()} {words} --data {data}",
    )

    async def prepare(context: services_context.Context) -> None:
        prepared.append(await demo_account.prepare(context, before, base_url=base_url))
        if with_sample:
            account = await demo_account.account_of(context)
            if await sample.write(context, folder, account.id, endpoint=f"{base_url}{dev_inbox.WEBHOOK_PATH}"):
                log.info("sample_week_written", account_id=account.id)

    async with _simulator(mail, sink, log=log) as simulator_at:

        def announce(addresses: roles.Addresses) -> None:
            host, port = _client_endpoint(addresses["submission"])
            smtp = msgspec.structs.replace(prepared[0].smtp, host=host, port=port)
            info = msgspec.structs.replace(
                prepared[0],
                smtp=smtp,
                sink=data_folder.Listener(*simulator_at),
                inbound=data_folder.Listener(*_client_endpoint(addresses["inbound"])),
            )
            folder.write_info(info)
            click.echo(_welcome(folder, info))

        # Mail goes to the simulator, unless another upstream is set.
        simulator = config.Upstream(
            name=providers.DEV_SIMULATOR, host=simulator_at.host, port=simulator_at.port, tls="off"
        )
        routed = msgspec.structs.replace(settings, upstreams=settings.upstreams or (simulator,))
        await service.run(
            routed, list(service.ROLES), log=log, inherited=bound, mail=mail, prepare=prepare, announce=announce
        )


@contextlib.asynccontextmanager
async def _simulator(
    mail: dev_inbox.Inbox, where: config.Endpoint, *, log: logs.Logger
) -> AsyncIterator[config.Endpoint]:
    def failed(problem: Exception) -> None:
        log.error("simulator_failed", exc_info=problem)

    async with contextlib.AsyncExitStack() as stack:
        with command.name_listen_option("--sink"):
            try:
                running = mailbox.serve(mail, host=where.host, port=where.port, failed=failed)
                bound = await stack.enter_async_context(running)
            except OSError as problem:
                raise roles.cannot_listen(where, problem) from problem
        yield _client_endpoint(config.Endpoint(*bound))


def bind_free_ports(settings: config.Settings) -> tuple[config.Settings, Mapping[str, listener.BoundSockets]]:
    """Bind the listeners whose port is 0, and put the ports in the settings: the first page already names them."""
    bound: dict[str, listener.BoundSockets] = {}
    for section in ("http", "submission", "inbound"):
        setting, chosen = f"{section}.listen", getattr(settings, section)
        where = config.endpoint(chosen.listen, name=setting)
        if where.port == 0:
            (bound[setting],) = listeners.bind(settings, setting)
            _, port = listener.address(bound[setting])
            chosen = msgspec.structs.replace(chosen, listen=str(config.Endpoint(where.host, port)))
            settings = msgspec.structs.replace(settings, **{section: chosen})
    return settings, bound


def client_url(settings: config.Settings) -> str:
    """The address for clients on this machine, unless a public one is set."""
    where = config.endpoint(settings.http.listen, name="http.listen")
    return settings.http.base_url or f"http://{_client_endpoint(where)}"


def _client_endpoint(where: config.Endpoint) -> config.Endpoint:
    return config.Endpoint(CLIENT_HOSTS.get(where.host, where.host), where.port)


def _welcome(folder: data_folder.DataFolder, info: data_folder.DevInfo) -> str:
    return WELCOME.format(
        base_url=info.base_url,
        api_key=info.api_key,
        domain=info.domain,
        template=info.template,
        smtp=config.Endpoint(info.smtp.host, info.smtp.port),
        smtp_host=info.smtp.host,
        smtp_port=info.smtp.port,
        route=demo_account.ROUTE,
        inbound=config.Endpoint(info.inbound.host, info.inbound.port) if info.inbound else "",
        smtp_username=info.smtp.username,
        smtp_password=info.smtp.password,
        login=parse.quote(f"{info.login.email} {info.login.password}"),
        login_email=info.login.email,
        login_password=info.login.password,
        program=_program(),
        data=shlex.quote(str(folder.path)),
        info=folder.info_file,
    )


def _program() -> str:
    """The path of this program, if it can be run from a shell."""
    return shlex.quote(sys.argv[0]) if Path(sys.argv[0]).name == "postroad" else "postroad"
