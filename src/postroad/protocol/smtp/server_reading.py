"""What a server reads from a session: lines, and the content of messages up to its end and within its size.

The end of DATA is CR LF dot CR LF and nothing else. A message with a bare CR or a bare LF is to be refused as a whole:
servers that read such line ends in different ways can be made to see one message as two ("SMTP smuggling"; RFC 5321
section 2.3.8). What is over its limit is thrown away while it comes, so that it costs no more memory than the limit.
"""

import io
from typing import Final

_LINE_END: Final = b"\r\n"
_END: Final = b"\r\n.\r\n"
# What must be kept of content that is thrown away, because its end may be split over two reads.
_KEPT: Final = len(_END) - 1


class DotStuffed:
    """The content that follows DATA (RFC 5321 section 4.5.2), read from a buffer that grows between the calls.

    The buffer begins with the line end of the command itself, so that a first line needs no rule of its own.
    """

    __slots__ = ("_content", "_limit", "_max_buffered", "_scanned", "has_bare_line_ends", "is_too_large")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        # At most every third octet is a dot at the start of a line, which is sent twice.
        self._max_buffered = limit + limit // 3 + 2 * len(_END)
        self._scanned = 0
        self._content = b""
        self.is_too_large = False
        self.has_bare_line_ends = False

    @property
    def is_complete(self) -> bool:
        """Whether no more is to come once it was read: DATA has one end."""
        return True

    def read(self, buffer: bytearray) -> bool:
        """Take the content out of the buffer once its end is there; whether it was."""
        end = buffer.find(_END, self._scanned)
        if end < 0:
            if len(buffer) > self._max_buffered:
                self.is_too_large = True
                del buffer[:-_KEPT]
            self._scanned = max(0, len(buffer) - _KEPT)
            return False
        if not self.is_too_large:
            # The line end before the final dot is the last line's own.
            self._keep(bytes(memoryview(buffer)[: end + len(_LINE_END)]))
        del buffer[: end + len(_END)]
        return True

    def content(self) -> bytes:
        """The lines, each without the dot that was put before it; nothing when they are too large."""
        return self._content

    def _keep(self, lines: bytes) -> None:
        self.has_bare_line_ends = has_bare_line_ends(lines)
        content = lines.replace(b"\r\n.", _LINE_END)[len(_LINE_END) :]
        self.is_too_large = len(content) > self._limit
        if not self.is_too_large:
            self._content = content


class Chunks:
    """The content that comes in chunks of announced sizes (RFC 3030 section 2)."""

    __slots__ = ("_collected", "_is_last", "_left", "_limit", "is_too_large")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._collected = bytearray()
        self._left = 0
        self._is_last = False
        self.is_too_large = False

    def begin(self, size: int, *, is_last: bool) -> None:
        """A chunk of this size follows."""
        self._left = size
        self._is_last = is_last
        if len(self._collected) + size > self._limit:
            self.is_too_large = True
            self._collected.clear()

    def read(self, buffer: bytearray) -> bool:
        """Take what is there of the chunk out of the buffer; whether the chunk is complete."""
        taken = buffer[: self._left]
        del buffer[: len(taken)]
        self._left -= len(taken)
        if not self.is_too_large:
            self._collected += taken
        return self._left == 0

    @property
    def is_complete(self) -> bool:
        """Whether no more is to come, or to be taken, once the chunk was read."""
        return self._is_last or self.is_too_large

    @property
    def has_bare_line_ends(self) -> bool:
        """Whether a CR or an LF stands alone, in a chunk or between two."""
        return has_bare_line_ends(self._collected)

    def content(self) -> bytes:
        """All chunks together; nothing when they are too large."""
        return bytes(self._collected)


Reader = DotStuffed | Chunks


def take_line(buffer: bytearray, limit: int) -> bytes | None:
    """The next line with its end, taken out of the buffer once it is there; nothing of it when it is too long."""
    end = buffer.find(b"\n") + 1
    if end == 0:
        # What is kept is enough to know by its end that it was too long.
        del buffer[limit + 1 :]
        return None
    line = bytes(buffer[:end]) if end <= limit else b""
    del buffer[:end]
    return line


def has_bare_line_ends(content: bytes | bytearray) -> bool:
    """Whether a CR or an LF stands alone."""
    # It notes which line ends it has seen, in one pass, and twice as fast as an expression for each of the two.
    seen = io.IncrementalNewlineDecoder(None, translate=False)
    seen.decode(content.decode("latin-1"), final=True)
    return seen.newlines not in (None, "\r\n")
