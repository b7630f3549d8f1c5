"""What a server reads from a session: lines, and the content of messages up to its end and within its size.

The end of DATA is CR LF dot CR LF and nothing else. A message with a bare CR or a bare LF is to be refused as a whole:
servers that read such line ends in different ways can be made to see one message as two ("SMTP smuggling"; RFC 5321
section 2.3.8). What is over its limit is thrown away while it comes, so that it costs no more memory than the limit.
"""

from typing import Final

_LINE_END: Final = b"\r\n"
_END: Final = b"\r\n.\r\n"
_ALL_BUT_LINE_ENDS: Final = bytes(octet for octet in range(256) if octet not in _LINE_END)
# What must be kept of content that is thrown away, because its end may be split over two reads.
_KEPT: Final = len(_END) - 1


class DotStuffed:
    """The content that follows DATA (RFC 5321 section 4.5.2), read from a buffer that grows between the calls.

    The buffer begins with the line end of the command itself, so that a first line needs no rule of its own.
    """

    __slots__ = ("_limit", "_most", "_scanned", "is_too_large")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        # At most every third octet is a dot at the start of a line, which is sent twice.
        self._most = limit + limit // 3 + 2 * len(_END)
        self._scanned = 0
        self.is_too_large = False

    def read(self, buffer: bytearray) -> bytes | None:
        """The whole content once its end is there, taken out of the buffer; nothing of it when it is too large."""
        end = buffer.find(_END, self._scanned)
        if end < 0:
            if len(buffer) > self._most:
                self.is_too_large = True
                del buffer[:-_KEPT]
            self._scanned = max(0, len(buffer) - _KEPT)
            return None
        content = b"" if self.is_too_large else _unstuffed(buffer, end)
        del buffer[: end + len(_END)]
        if len(content) > self._limit:
            self.is_too_large = True
            return b""
        return content


class Chunks:
    """The content that comes in chunks of announced sizes (RFC 3030 section 2)."""

    __slots__ = ("_collected", "_left", "_limit", "is_last", "is_too_large", "size")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._collected = bytearray()
        self._left = 0
        self.size = 0
        self.is_last = False
        self.is_too_large = False

    def begin(self, size: int, *, is_last: bool) -> None:
        """A chunk of this size follows."""
        self._left = self.size = size
        self.is_last = is_last
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

    def content(self) -> bytes:
        """All chunks together."""
        return bytes(self._collected)


def take_line(buffer: bytearray, most: int) -> bytes | None:
    """The next line with its end, taken out of the buffer once it is there; nothing of it when it is too long."""
    end = buffer.find(b"\n") + 1
    if end == 0:
        # What is kept is enough to know by its end that it was too long.
        del buffer[most + 1 :]
        return None
    line = bytes(buffer[:end]) if end <= most else b""
    del buffer[:end]
    return line


def has_bare_line_ends(content: bytes) -> bool:
    """Whether a CR or an LF stands alone: all of them are in pairs, or some are not."""
    return len(content.translate(None, _ALL_BUT_LINE_ENDS)) != 2 * content.count(_LINE_END)


def _unstuffed(buffer: bytearray, end: int) -> bytes:
    """The lines between the command's line end and the final dot, each without the dot that was put before it."""
    if buffer.find(b"\r\n.", 0, end) < 0:
        return bytes(buffer[len(_LINE_END) : end + len(_LINE_END)])
    return bytes(buffer[: end + len(_LINE_END)]).replace(b"\r\n.", _LINE_END)[len(_LINE_END) :]
