"""Readers of command lines and message content, bounded in size.

The end of DATA is CRLF dot CRLF and nothing else: servers that interpret other line ends differently can be made to see
one message as two ("SMTP smuggling"; RFC 5321 section 2.3.8). A bare LF in the content becomes CRLF, as with Postfix's
`smtpd_forbid_bare_newline = normalize`, because programs send the text files of their system. A bare CR ends a line
nowhere, and a message with one is refused. Sizes are those of what was sent, without the dots for transparency. Input
over its limit is discarded while it arrives, so it never needs more room than the limit.
"""

import io
from collections.abc import Callable
from typing import Final, Protocol

from postroad.protocol.smtp import server_commands, server_replies, values

# Content while it arrives: what exceeds a first part in memory goes to a store that the driver provides.
#
# A client may take minutes to send a message, so hundreds of unfinished ones must not fill the memory. Ordinary mail is
# smaller than the first part and never touches a store.

# Larger than nearly all mail; 500 clients in the middle of their messages hold 125 MiB.
IN_MEMORY_OCTETS = 256 * 1024


class Store(Protocol):
    def write(self, part: bytes) -> bool:
        """Append a part; False when there is no room."""

    def read(self) -> bytes:
        """Everything that was written."""

    def close(self) -> None:
        """Discard everything."""


OpenStore = Callable[[], Store]


class MemoryStore:
    def __init__(self) -> None:
        self._kept = bytearray()

    def write(self, part: bytes) -> bool:
        self._kept += part
        return True

    def read(self) -> bytes:
        return bytes(self._kept)

    def close(self) -> None:
        self._kept.clear()


class StoredContent:
    """The parts of a content that are not in memory. Without room for one of them, none is kept."""

    __slots__ = ("_open_store", "_store", "is_incomplete", "octets")

    def __init__(self, open_store: OpenStore) -> None:
        self._open_store = open_store
        self._store: Store | None = None
        self.octets = 0
        self.is_incomplete = False

    def append(self, part: bytes) -> None:
        self.octets += len(part)
        if self.is_incomplete:
            return
        if self._store is None:
            self._store = self._open_store()
        if not self._store.write(part):
            self.is_incomplete = True
            self.discard()

    def take(self) -> bytes:
        """Read everything back, once."""
        if self._store is None:
            return b""
        try:
            return self._store.read()
        finally:
            self.discard()

    def discard(self) -> None:
        store, self._store = self._store, None
        if store is not None:
            store.close()


_LINE_END: Final = b"\r\n"
_END: Final = b"\r\n.\r\n"
# Kept of discarded content, because its end may be split over two reads.
_KEPT: Final = len(_END) - 1
# As IncrementalNewlineDecoder names the line ends that it has seen.
_CRLF_ONLY: Final = (None, "\r\n")
_WITHOUT_BARE_CR: Final = ("\n", ("\n", "\r\n"))


class DotStuffed:
    """The content after DATA (RFC 5321 section 4.5.2), read from a buffer that grows between the calls.

    The buffer starts with the CRLF of the command, so the first line needs no special case.
    """

    __slots__ = ("_content", "_limit", "_max_octets", "_scanned", "is_too_large", "stored")

    def __init__(self, limit: int, open_store: OpenStore = MemoryStore) -> None:
        self._limit = limit
        # At most every second octet is a leading dot, which is sent twice.
        self._max_octets = limit + limit // 2 + 2 * len(_END)
        self._scanned = 0
        self._content = b""
        self.stored = StoredContent(open_store)
        self.is_too_large = False

    @property
    def is_complete(self) -> bool:
        """Always true: DATA has one end."""
        return True

    def read(self, buffer: bytearray) -> bool:
        """Take the content out of the buffer; whether its end has arrived."""
        end = buffer.find(_END, self._scanned)
        if end < 0:
            if self.stored.octets + len(buffer) > self._max_octets:
                self.is_too_large = True
                self.stored.discard()
            if self.is_too_large or len(buffer) > IN_MEMORY_OCTETS:
                self._move(buffer, max(0, len(buffer) - _KEPT))
            self._scanned = max(0, len(buffer) - _KEPT)
            return False
        # The CRLF before the final dot belongs to the last line.
        size = end + len(_LINE_END)
        if self.stored.octets or self.is_too_large:
            self._move(buffer, size)
            size = 0
        else:
            self._keep(bytes(memoryview(buffer)[:size]))
        del buffer[: size + len(_END) - len(_LINE_END)]
        return True

    def content(self) -> bytes | None:
        """The content without dot-stuffing, normalised; None with a bare CR, empty when too large."""
        if self.stored.octets and not self.is_too_large:
            self._keep(self.stored.take())
        return normalise(self._content)

    def _move(self, buffer: bytearray, size: int) -> None:
        """Move the beginning of the buffer to the store, or discard what is too large."""
        if not self.is_too_large:
            self.stored.append(bytes(memoryview(buffer)[:size]))
        del buffer[:size]

    def _keep(self, lines: bytes) -> None:
        # Clients that send a bare LF take it for a line end, so they double the dots behind it too.
        content = lines.replace(b"\n.", b"\n")[len(_LINE_END) :]
        self.is_too_large = len(content) > self._limit
        if not self.is_too_large:
            self._content = content


class Chunks:
    """The content of BDAT commands (RFC 3030 section 2)."""

    __slots__ = ("_collected", "_is_last", "_left", "_limit", "is_too_large", "stored")

    def __init__(self, limit: int, open_store: OpenStore = MemoryStore) -> None:
        self._limit = limit
        self._collected = bytearray()
        self._left = 0
        self._is_last = False
        self.stored = StoredContent(open_store)
        self.is_too_large = False

    def begin(self, size: int, *, is_last: bool) -> None:
        self._left = size
        self._is_last = is_last
        if self.stored.octets + len(self._collected) + size > self._limit:
            self.is_too_large = True
            self._collected.clear()
            self.stored.discard()

    def read(self, buffer: bytearray) -> bool:
        """Take the available part of the chunk out of the buffer; whether the chunk is complete."""
        taken = buffer[: self._left]
        del buffer[: len(taken)]
        self._left -= len(taken)
        if not self.is_too_large:
            self._collected += taken
            if len(self._collected) > IN_MEMORY_OCTETS:
                self.stored.append(bytes(self._collected))
                self._collected.clear()
        return self._left == 0

    @property
    def is_complete(self) -> bool:
        """Whether this was the last chunk, or the content is too large."""
        return self._is_last or self.is_too_large

    def content(self) -> bytes | None:
        """All chunks joined, normalised; None with a bare CR, empty when too large."""
        return normalise(b"" if self.is_too_large else self.stored.take() + self._collected)


Reader = DotStuffed | Chunks


def take_line(buffer: bytearray, limit: int) -> bytes | None:
    """Take the next line, with its end, out of the buffer; empty when too long, None while incomplete."""
    end = buffer.find(b"\n") + 1
    if end == 0:
        # Keeps enough to know later that the line was too long.
        del buffer[limit + 1 :]
        return None
    line = bytes(buffer[:end]) if end <= limit else b""
    del buffer[:end]
    return line


def strip_line_end(line: bytes, code: int) -> bytes:
    """The line without its CRLF. It has one LF, at its end; it is empty if it was too long."""
    if not line:
        raise server_commands.CommandError(code, "5.5.2", "Line too long")
    text, _, end = line.partition(b"\r")
    if end != b"\n":
        raise server_commands.CommandError(code, "5.5.2", "Bare CR or LF in the line; end lines with CRLF")
    return text


def normalise(content: bytes) -> bytes | None:
    """The content with CRLF for each bare LF; None if it has a bare CR."""
    seen = _line_ends(content)
    if seen in _CRLF_ONLY:
        return content
    return content.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n") if seen in _WITHOUT_BARE_CR else None


def has_bare_line_ends(content: bytes) -> bool:
    return _line_ends(content) not in _CRLF_ONLY


def _line_ends(content: bytes) -> str | tuple[str, ...] | None:
    # It records the line ends it has seen in one pass, twice as fast as two regular expressions.
    seen = io.IncrementalNewlineDecoder(None, translate=False)
    seen.decode(content.decode("latin-1"), final=True)
    return seen.newlines


_NO_SENDER: Final = server_commands.Path("", {})
# Before a content begins; nothing is read into it.
_NO_CONTENT: Final = Chunks(0)


class TransactionBuilder:
    __slots__ = ("_limit", "_open_store", "_reader", "_recipients", "sender")

    def __init__(self, limit: int, open_store: OpenStore) -> None:
        """`limit` is that of the content, in octets."""
        self._limit = limit
        self._open_store = open_store
        self.sender = _NO_SENDER
        # Keyed by the lower-case address: a recipient named twice gets one message.
        self._recipients: dict[str, str] = {}
        # Of the content, once it begins.
        self._reader: Reader = _NO_CONTENT

    @property
    def is_utf8(self) -> bool:
        """Whether addresses may be non-ASCII (RFC 6531)."""
        return "SMTPUTF8" in self.sender.parameters

    def has_room(self, recipient: str, limit: int) -> bool:
        """Whether the recipient fits the limit, or is already included."""
        return len(self._recipients) < limit or recipient.lower() in self._recipients

    def add(self, recipient: str) -> None:
        self._recipients.setdefault(recipient.lower(), recipient)

    def begin_data(self) -> Reader:
        self._reader = DotStuffed(self._limit, self._open_store)
        return self._reader

    def begin_chunk(self, size: int, *, is_last: bool, is_first: bool) -> Reader:
        reader = self._reader
        if is_first or reader is _NO_CONTENT or not isinstance(reader, Chunks):
            # Chunks sent outside a transaction are discarded.
            reader = self._reader = Chunks(self._limit if is_first else 0, self._open_store)
        reader.begin(size, is_last=is_last)
        return reader

    @property
    def is_large(self) -> bool:
        """Whether the complete content is in a store."""
        reader = self._reader
        return bool(reader.stored.octets) and not (reader.is_too_large or reader.stored.is_incomplete)

    def result(self) -> values.MailTransaction | values.Reply:
        """The complete transaction, or the refusal of its content."""
        content = self._reader.content()
        if self._reader.is_too_large:
            return server_replies.too_large(self._limit)
        if self._reader.stored.is_incomplete:
            return server_replies.NO_ROOM
        if content is None:
            return server_replies.BARE_CR
        parameters = self.sender.parameters
        return values.MailTransaction(
            sender=self.sender.address,
            recipients=tuple(self._recipients.values()),
            content=(content,),
            is_8bit=parameters.get("BODY", "").upper() == "8BITMIME",
            needs_smtputf8="SMTPUTF8" in parameters,
        )

    def discard(self) -> "TransactionBuilder":
        """The transaction has ended: keep no content. The builder of the next one."""
        if self._reader.stored.octets:
            self._reader.stored.discard()
        return TransactionBuilder(self._limit, self._open_store)
