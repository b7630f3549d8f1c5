"""One request to spamd, the daemon of SpamAssassin: its score of a message, and the rules behind it.

The protocol is that of spamc (spamd/PROTOCOL in SpamAssassin's source). The whole request has one timeout, and the
response a maximum size. A failure is returned as a value.
"""

import asyncio
import contextlib
import re
from typing import Final

import msgspec

TIMEOUT: Final = 15.0
# A report has a line for each rule that matched.
MAX_RESPONSE_BYTES: Final = 64 * 1024

_FIRST_LINE: Final = re.compile(rb"SPAMD/[0-9.]+ ([0-9]+) ")
_SPAM: Final = re.compile(
    rb"^Spam:\s*(true|false|yes|no)\s*;\s*(-?[0-9]{1,6}(?:\.[0-9]+)?)\s*/\s*(-?[0-9]{1,6}(?:\.[0-9]+)?)\s*$",
    re.IGNORECASE | re.MULTILINE,
)


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What SpamAssassin says: a message whose score reaches the threshold is spam. The report is text for people."""

    is_spam: bool
    score: float
    threshold: float
    report: str


class Failure(msgspec.Struct, frozen=True):
    """No verdict; `detail` is the reason."""

    detail: str


async def check(address: str, message: bytes) -> Verdict | Failure:
    """Ask the daemon at `host:port`, or at the path of a Unix socket."""
    try:
        async with asyncio.timeout(TIMEOUT):
            return _verdict(await _exchange(address, message))
    except TimeoutError:
        return Failure(f"no complete response within {TIMEOUT:g} seconds")
    except OSError as trouble:
        return Failure(trouble.strerror or "the connection failed")


async def _exchange(address: str, message: bytes) -> bytes:
    if address.startswith("/"):
        reader, writer = await asyncio.open_unix_connection(address)
    else:
        host, _, port = address.rpartition(":")
        reader, writer = await asyncio.open_connection(host.strip("[]"), int(port))
    try:
        # spamd wants lines that end as they do in mail, which they do here.
        writer.write(b"REPORT SPAMC/1.5\r\nContent-length: %d\r\n\r\n" % len(message))
        writer.write(message)
        await writer.drain()
        response = b""
        while len(response) < MAX_RESPONSE_BYTES and (part := await reader.read(MAX_RESPONSE_BYTES)):
            response += part
        return response[:MAX_RESPONSE_BYTES]
    finally:
        writer.transport.abort()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


def _verdict(response: bytes) -> Verdict | Failure:
    head, _, body = response.partition(b"\r\n\r\n")
    first, spam = _FIRST_LINE.match(head), _SPAM.search(head.replace(b"\r\n", b"\n"))
    if first is None:
        return Failure("the response is not from spamd")
    if first[1] != b"0":
        return Failure(f"spamd responded with error {first[1].decode()}")
    if spam is None:
        return Failure("the response has no score")
    is_spam = spam[1].lower() in (b"true", b"yes")
    report = body.decode("utf-8", "replace").strip()
    return Verdict(is_spam=is_spam, score=float(spam[2]), threshold=float(spam[3]), report=report)
