"""A test of an upstream: connect, TLS, EHLO, AUTH and, if wanted, a message. Says what happened and what to do."""

import asyncio
import dataclasses
import email.message
import email.policy
import email.utils
import random
from typing import Final

import msgspec

from postroad import config
from postroad.delivery import attempter, routing
from postroad.network import hostname, probe
from postroad.network.dns import resolver
from postroad.network.smtp import smtp_connection
from postroad.protocol.smtp import values

# What to do about a failure, by how far the session got.
ADVICE: Final = {
    values.Stage.ROUTE: "Correct host, or delivery.resolvers.",
    values.Stage.CONNECT: "Check host and port, and that the firewall and the provider of this server allow the port.",
    values.Stage.BANNER: "Check the port: 587 is usual with starttls, 465 with tls.",
    values.Stage.HELLO: "Check the port, and set delivery.hostname to the full name of this server.",
    values.Stage.STARTTLS: (
        "Check port and tls: 587 with starttls, 465 with tls. The certificate must be for host; set ca_file if a "
        "private CA signed it."
    ),
    values.Stage.AUTH: "Correct username and password. They may differ from those of the upstream's website.",
    values.Stage.MAIL: "Read the reply. The upstream may require a verified sender or a login.",
    values.Stage.RECIPIENT: "Read the reply. The upstream may accept only verified recipients, or require a login.",
    values.Stage.DATA: "Read the reply.",
    values.Stage.CONTENT: "Read the reply. The upstream may require a verified sender.",
}


class Step(msgspec.Struct, frozen=True):
    """Something that succeeded or failed, and then what to do."""

    is_good: bool
    found: str
    advice: str = ""


async def run(settings: config.Settings, upstream: config.Upstream, *, sender: str, to: str | None) -> list[Step]:
    """The steps up to the first that failed. Without a recipient no message is sent."""
    hello_name = settings.delivery.hostname or await hostname.name()
    router = routing.Router(
        settings.delivery,
        resolver.Resolver(settings.delivery.resolvers),
        clock=asyncio.get_running_loop().time,
        shuffle=random.shuffle,
        upstreams=(upstream,),
        sources=settings.sources,
    )
    connections = attempter.Connector(settings, hello_name=hello_name)
    try:
        route = await router.route(upstream.provider_queue)
    finally:
        await router.close()
    if isinstance(route, routing.NoRoute):
        return [_failed(values.RecipientResult(values.Stage.ROUTE, cause=route.cause, detail=route.detail))]
    steps: list[Step] = []
    for host in route.hosts:
        try:
            connection = await connections.connect(_from_here(settings, host))
        except smtp_connection.ConnectFailed as failure:
            steps.append(_failed(failure.result))
            continue
        try:
            encryption = connection.tls or "without TLS"
            # One address that works is enough.
            steps = [Step(is_good=True, found=f"Connected to {host.name} [{host.address}]:{host.port}, {encryption}.")]
            login = f"Logged in as {upstream.username}." if upstream.username else "No username is set: no login."
            steps.append(Step(is_good=True, found=login))
            if to is not None:
                steps.append(await _send(connection, sender=sender or f"postmaster@{hello_name}", to=to))
        finally:
            await connection.close()
        break
    return steps


def _from_here(settings: config.Settings, host: routing.Host) -> routing.Host:
    """The host, from the first source address of this host that can reach it."""
    usable = (
        candidate
        for candidate in settings.sources
        if candidate.is_ipv6 == (":" in host.address) and probe.can_bind(candidate.address)
    )
    source = next(usable, None)
    return host if source is None else dataclasses.replace(host, source=source.name)


async def _send(connection: smtp_connection.SmtpConnection, *, sender: str, to: str) -> Step:
    message = email.message.EmailMessage(policy=email.policy.SMTP)
    message["From"], message["To"], message["Subject"] = sender, to, "Test of an upstream"
    message["Date"], message["Message-ID"] = email.utils.localtime(), email.utils.make_msgid(domain="postroad.invalid")
    message.set_content("This message shows that Postroad can send through this upstream.\n")
    transaction = values.MailTransaction(sender, (to,), (message.as_bytes(),))
    (result,) = await connection.deliver(transaction)
    if result.reply is not None and result.stage is values.Stage.CONTENT and result.reply.code < 300:  # noqa: PLR2004
        return Step(is_good=True, found=f"A message from {sender} to {to} was accepted: {_reply(result)}.")
    return _failed(result)


def _failed(result: values.RecipientResult) -> Step:
    found = f"Failed at {result.stage.value}: {_reply(result)}."
    return Step(is_good=False, found=found, advice=ADVICE[result.stage])


def _reply(result: values.RecipientResult) -> str:
    text = result.response_text.rstrip(".")
    return f"{result.reply.code} {text}" if result.reply else text
