"""`postroad webhook listen`: a webhook endpoint on this machine, for development.

It verifies with the secret of any endpoint. With the data folder of `postroad dev`, it points the demo account's
webhook to itself and restores it at exit. Events go to stdout, one per line; status messages go to stderr.
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
from postroad.cli import command, data_folder, dev, dev_seed, webhook_listen, webhook_listener
from postroad.network import http_limits, http_listener
from postroad.roles import composition
from postroad.services import context as services_context
from postroad.services.auth import users
from postroad.services.webhooks import endpoints, signing_secrets
from postroad.storage import webhooks as stored_webhooks

VARIABLE: Final = webhook_listen.SECRET_VARIABLE
# A service keeps a few connections to one endpoint.
LIMITS: Final = http_limits.Limits(connections=64)
# Requests in progress have been reported already.
GRACE_SECONDS: Final = 1.0
SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)

# Serves with these secrets; yields the URL, and a future that is done when it should stop.
Serve = Callable[[webhook_listener.Secrets], contextlib.AbstractAsyncContextManager[tuple[str, asyncio.Future[None]]]]


def listen(*, port: int, host: str, secret: str | None, data: Path | None, status: int, as_json: bool) -> None:
    """Receive and verify webhooks at an endpoint on this machine, and print one line for each, until Ctrl-C."""
    if secret is not None and data is not None:
        raise click.UsageError("--data and --secret cannot be combined; use one of them.")
    with command.report_errors(), command.name_listen_option("--host and --port"):
        where = config.endpoint(str(config.Endpoint(host, port)), name="--host")
        serve = functools.partial(_serve, where, status=status, as_json=as_json)
        if data is not None:
            asyncio.run(_listen_for_demo(data, serve))
        else:
            given = _secrets(os.environ.get(VARIABLE, "") if secret is None else secret)
            asyncio.run(_listen(given, serve))


async def _listen(given: Sequence[str], serve: Serve) -> None:
    """Listen without an installation, with the given secrets or none."""

    async def secrets() -> Sequence[str]:
        return given

    async with serve(secrets) as (url, stopped):
        _print_status(f"Listening for webhooks on {url}. Press Ctrl-C to stop.")
        if not given:
            _print_status(f"Signatures are not verified: set {VARIABLE} to the secret of the endpoint, or use --data.")
        await stopped


async def _listen_for_demo(data: Path, serve: Serve) -> None:
    """Listen for the demo account of `postroad dev`. Each request reads the secret, which may be rotated."""
    settings = data_folder.DataFolder(data).settings(environment=os.environ)
    with command.name_store_on_error(settings):
        async with composition.open_context(settings) as ctx:
            account_id = await _demo_account(ctx, data)
            before = await endpoints.find(ctx, account_id)
            async with serve(functools.partial(_stored_secrets, ctx, account_id)) as (url, stopped):
                await endpoints.save(ctx, account_id, url=url, wanted=(), enabled=True)
                try:
                    _print_status(
                        f"Listening on {url}. The webhook of the demo account points here. Press Ctrl-C to stop."
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
            # The reader is gone, as after `| head`.
            if not stopped.done():
                stopped.set_exception(problem)

    application = webhook_listener.WebhookListener(
        secrets=secrets, status=status, clock=services_context.system_clock, report=report
    )
    listener = http_listener.HttpListener(application, refuse=webhook_listener.refusal, limits=LIMITS)
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
    """The first signal stops; later signals have their default action."""
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
        raise click.UsageError(f"not a webhook secret; it must start with {signing_secrets.PREFIX}")
    return secrets


async def _demo_account(ctx: services_context.Context, data: Path) -> str:
    person = await users.by_email(ctx, dev_seed.EMAIL)
    if person is None:
        raise errors.NotFound(f"{data} has no demo account; start 'postroad dev --data {data}' first")
    return person.account_id


async def _stored_secrets(ctx: services_context.Context, account_id: str) -> Sequence[str]:
    async with ctx.store.reading() as tx:
        webhook = await stored_webhooks.first_of(tx, account_id)
        rows = await stored_webhooks.secrets(tx, [webhook.id], now=ctx.clock()) if webhook else []
    if not rows:
        raise errors.InvalidRequest("the webhook of the demo account has been deleted")
    return [signing_secrets.decrypt(ctx, row) for row in rows]


async def _restore_webhook(
    ctx: services_context.Context, account_id: str, before: stored_webhooks.Webhook | None, *, url: str
) -> str:
    """Restore the webhook. One created by this run is disabled; its secret and log are kept."""
    now = await endpoints.find(ctx, account_id)
    if now is None or now.url != url:
        return "The webhook of the demo account was changed by someone else and is not restored."
    if before is None or before.id != now.id:
        await endpoints.save(ctx, account_id, url=url, enabled=False)
        return "The webhook of the demo account is disabled; its log is kept."
    await endpoints.save(ctx, account_id, url=before.url, wanted=before.events.split(), enabled=bool(before.enabled))
    return "The webhook of the demo account is restored."


def _print_status(text: str) -> None:
    click.echo(text, err=True)
