"""`postroad webhook listen`: a receiver on this machine, to see webhooks come.

It works with the secret of any endpoint. With the folder of a `postroad dev` it points the demo account's webhook at
itself and puts it back when it stops. Events go to stdout, one a line; what the command has to say goes to stderr.
"""

import asyncio
import contextlib
import functools
import os
import signal
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

import click

from postroad import config, errors, roles
from postroad.cli import command, data_folder, dev, dev_seed, webhook_listener
from postroad.network import http_limits, http_listener
from postroad.services import context as services_context
from postroad.services.auth import users
from postroad.services.webhooks import endpoints, signing_secrets
from postroad.storage import webhooks as stored_webhooks

VARIABLE: Final = "POSTROAD_WEBHOOK_SECRET"
# A service keeps a few connections to one receiver; a developer's has few services.
LIMITS: Final = http_limits.Limits(connections=64)
# Whoever is being answered has had their line already.
GRACE_SECONDS: Final = 1.0
SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)

# Serves with the secrets it is given, and gives its URL and what ends when it is to stop.
Serve = Callable[[webhook_listener.Secrets], contextlib.AbstractAsyncContextManager[tuple[str, asyncio.Future[None]]]]


@click.command("listen")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=8026,
    show_default=True,
    help="Where to listen; 0 takes a free one.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--secret",
    metavar="SECRET",
    help=f"The endpoint's secret, or several with commas between them. Better in the variable {VARIABLE}, which "
    "other users of this machine do not see.",
)
@click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="The folder of a 'postroad dev', whose demo account sends its webhooks here meanwhile.",
)
@click.option(
    "--status",
    type=click.IntRange(200, 599),
    default=200,
    show_default=True,
    help="The answer to events that are good.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line.")
def listen(*, port: int, host: str, secret: str | None, data: Path | None, status: int, as_json: bool) -> None:
    """Receive webhooks on this machine, verify them, and print one line for each, until Ctrl-C."""
    if secret is not None and data is not None:
        raise click.UsageError("--data knows its own secret; give that or --secret.")
    with command.report_errors(), command.name_listen_option("--host and --port"):
        where = config.endpoint(str(config.Endpoint(host, port)), name="--host")
        serve = functools.partial(_serve, where, status=status, as_json=as_json)
        if data is not None:
            asyncio.run(_listen_for_demo(data, serve))
        else:
            given = _secrets(os.environ.get(VARIABLE, "") if secret is None else secret)
            asyncio.run(_listen(given, serve))


async def _listen(given: Sequence[str], serve: Serve) -> None:
    """Without an installation: with the secrets that were given, or with none."""

    async def secrets() -> Sequence[str]:
        return given

    async with serve(secrets) as (url, stopped):
        _print_status(f"Listening on {url} for webhooks. Ctrl-C stops it.")
        if not given:
            _print_status(f"Nothing is verified: give the endpoint's secret in the variable {VARIABLE}, or --data.")
        await stopped


async def _listen_for_demo(data: Path, serve: Serve) -> None:
    """For the demo account of `postroad dev`. A secret may be rotated meanwhile, so each request asks for it."""
    settings = data_folder.DataFolder(data).settings(environment=os.environ)
    with command.name_store_on_error(settings):
        async with services_context.open_context(settings) as ctx:
            account_id = await _demo_account(ctx, data)
            before = await endpoints.find(ctx, account_id)
            async with serve(functools.partial(_stored_secrets, ctx, account_id)) as (url, stopped):
                await endpoints.save(ctx, account_id, url=url)
                try:
                    _print_status(
                        f"Listening on {url}. The webhook of the demo account points here until Ctrl-C stops it."
                    )
                    await stopped
                finally:
                    _print_status(await _restore_webhook(ctx, account_id, before, url=url))


@contextlib.asynccontextmanager
async def _serve(
    where: config.Endpoint, secrets: webhook_listener.Secrets, *, status: int, as_json: bool
) -> AsyncIterator[tuple[str, asyncio.Future[None]]]:
    stopped: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    shown = webhook_listener.json_line if as_json else webhook_listener.line

    def report(received: webhook_listener.ReceivedWebhook) -> None:
        try:
            click.echo(shown(received))
        except OSError as problem:
            # Nobody reads any more, as after `| head`.
            if not stopped.done():
                stopped.set_exception(problem)

    receiver = webhook_listener.WebhookListener(
        secrets=secrets, status=status, clock=services_context.system_clock, report=report
    )
    listener = http_listener.HttpListener(receiver, refuse=webhook_listener.refusal, limits=LIMITS)
    try:
        await listener.start(where.host, where.port)
    except OSError as problem:
        raise roles.cannot_listen(where, problem) from problem
    host, port = listener.address
    try:
        with _stopped_by_signals(stopped):
            yield f"http://{config.Endpoint(dev.CLIENT_HOSTS.get(host, host), port)}/", stopped
    finally:
        await listener.stop(grace_seconds=GRACE_SECONDS)


@contextlib.contextmanager
def _stopped_by_signals(stopped: asyncio.Future[None]) -> Iterator[None]:
    """The first signal ends the wait; from then on signals do what they always do."""
    loop = asyncio.get_running_loop()

    def remove_handlers() -> None:
        for number in SIGNALS:
            loop.remove_signal_handler(number)

    def stop() -> None:
        remove_handlers()
        if not stopped.done():
            stopped.set_result(None)

    for number in SIGNALS:
        loop.add_signal_handler(number, stop)
    try:
        yield
    finally:
        remove_handlers()


def _secrets(text: str) -> list[str]:
    secrets = [part.strip() for part in text.split(",") if part.strip()]
    if not all(secret.startswith(signing_secrets.PREFIX) for secret in secrets):
        raise errors.InvalidRequest(f"a secret of a webhook begins with {signing_secrets.PREFIX}; this one does not")
    return secrets


async def _demo_account(ctx: services_context.Context, data: Path) -> str:
    person = await users.by_email(ctx, dev_seed.EMAIL)
    if person is None:
        raise errors.NotFound(f"there is no demo account in {data}; start 'postroad dev --data {data}' first")
    return person.account_id


async def _stored_secrets(ctx: services_context.Context, account_id: str) -> Sequence[str]:
    async with ctx.store.reading() as tx:
        webhook = await stored_webhooks.of_account(tx, account_id)
        rows = await stored_webhooks.secrets(tx, [webhook.id], now=ctx.clock()) if webhook else []
    if not rows:
        raise errors.InvalidRequest("the webhook of the demo account is gone, and its secret with it")
    return [signing_secrets.decrypt(ctx, row) for row in rows]


async def _restore_webhook(
    ctx: services_context.Context, account_id: str, before: stored_webhooks.Webhook | None, *, url: str
) -> str:
    """Leave the endpoint as it was found. One that this run has made is disabled, with its secret and its log."""
    now = await endpoints.find(ctx, account_id)
    if now is None or now.url != url:
        return "The webhook of the demo account was changed meanwhile, and is left as it is."
    if before is None or before.id != now.id:
        await endpoints.save(ctx, account_id, url=url, wanted=now.events.split(), enabled=False)
        return "The webhook of the demo account is disabled now; its log is kept."
    await endpoints.save(ctx, account_id, url=before.url, wanted=before.events.split(), enabled=bool(before.enabled))
    return "The webhook of the demo account is as it was before."


def _print_status(text: str) -> None:
    click.echo(text, err=True)


GROUP = click.Group("webhook", commands=[listen], help="Webhooks on this machine.")
