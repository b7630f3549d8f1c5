"""Short connections that only look: whether an address can be used, whether a listener answers, what it offers.

Every function is bounded in time and raises `ProbeFailed`, whose text says what was tried and what came of it.
"""

import asyncio
import contextlib
import ipaddress
import os
import socket
from typing import Final

import msgspec

from postroad import config
from postroad.model.delivery import tls_policy
from postroad.network.http import http_client
from postroad.network.smtp import smtp_connection
from postroad.network.tls import client_tls

CONNECT_SECONDS: Final = 5.0
REPLY_SECONDS: Final = 5.0
# Listen addresses that stand for every address of the host, and where to reach them.
ANY_ADDRESS: Final = {"0.0.0.0": "127.0.0.1", "::": "127.0.0.1"}  # noqa: S104 - an address to look up


class ProbeFailed(Exception):
    """The other side was not reached, or did not answer as expected. `has_answered`: it is there, and refused."""

    def __init__(self, reason: str, *, has_answered: bool = False) -> None:
        super().__init__(reason)
        self.has_answered = has_answered


class SmtpAnswer(msgspec.Struct, frozen=True):
    """An SMTP server that greeted us; `certificate` is in DER, and None if it offers no STARTTLS."""

    certificate: bytes | None


def can_bind(address: str) -> bool:
    family = socket.AF_INET6 if ipaddress.ip_address(address).version == 6 else socket.AF_INET  # noqa: PLR2004
    with socket.socket(family, socket.SOCK_STREAM) as trial:
        try:
            trial.bind((address, 0))
        except OSError:
            return False
    return True


def local_end(endpoint: config.Endpoint) -> config.Endpoint:
    """Where this host reaches a listen address of its own."""
    return config.Endpoint(ANY_ADDRESS.get(endpoint.host, endpoint.host), endpoint.port)


async def smtp(
    endpoint: config.Endpoint, *, host: str, hello_name: str, starttls: bool = False, source_address: str | None = None
) -> SmtpAnswer:
    """Connect, EHLO, STARTTLS if wanted and offered, QUIT. `host` is the name of the server."""
    policy = tls_policy.OPPORTUNISTIC if starttls else tls_policy.TlsPolicy(tls_policy.Mode.PLAIN)
    destination = smtp_connection.Destination(
        host=host, address=endpoint.host, port=endpoint.port, tls=policy, source_address=source_address
    )
    timeouts = smtp_connection.Timeouts(connect=CONNECT_SECONDS, reply=REPLY_SECONDS, content=REPLY_SECONDS)
    try:
        connection = await smtp_connection.connect(destination, hello_name=hello_name, timeouts=timeouts)
    except smtp_connection.ConnectFailed as problem:
        reply = problem.result.reply
        reason = f"{reply.code} {reply.text}" if reply else problem.result.detail
        raise ProbeFailed(reason, has_answered=reply is not None) from None
    try:
        return SmtpAnswer(connection.peer_certificate)
    finally:
        await connection.close()


async def certificate(endpoint: config.Endpoint, *, server_name: str) -> bytes:
    """The certificate of a listener with implicit TLS, in DER."""
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            _, writer = await asyncio.open_connection(
                endpoint.host, endpoint.port, ssl=client_tls.context(verifies=False), server_hostname=server_name
            )
    except (OSError, TimeoutError) as problem:
        raise ProbeFailed(_reason(problem)) from None
    found: bytes = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.transport.abort()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
    return found


async def http_status(endpoint: config.Endpoint, path: str, *, is_tls: bool) -> int:
    context = client_tls.context(verifies=False) if is_tls else None
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            address = await _resolved(endpoint.host)
            peer = http_client.Peer(host=endpoint.host, address=address, port=endpoint.port, tls=context)
            connection = await http_client.connect(peer)
            try:
                request = f"GET {path} HTTP/1.1\r\nHost: {endpoint}\r\nConnection: close\r\n\r\n"
                return (await connection.exchange(request.encode(), max_body=1024)).status
            finally:
                connection.abort()
    except (OSError, http_client.HttpClientError, TimeoutError) as problem:
        raise ProbeFailed(_reason(problem)) from None


async def _resolved(host: str) -> str:
    """The address of a listen host, which may be a name such as localhost."""
    found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return str(found[0][4][0])


def _reason(problem: BaseException) -> str:
    if isinstance(problem, TimeoutError):
        return "no answer in time"
    if isinstance(problem, OSError) and problem.errno:
        return os.strerror(problem.errno).lower()
    return str(problem) or type(problem).__name__
