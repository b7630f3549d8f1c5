"""A destination in the benchmark's own process, which takes everything and knows when each final dot came.

It shares its clock with whoever sends, so the time from a send request to the destination is one subtraction.
"""

import asyncio
import contextlib
import time


class TimedSink:
    """Notes when mail to recipients whose address begins with `prefix` arrives, and counts all mail."""

    def __init__(self, *, prefix: str, expected: int) -> None:
        self.arrived: dict[str, float] = {}
        self.count = 0
        self.is_complete = asyncio.Event()
        self._prefix = prefix
        self._expected = expected

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One session; commands may come together."""
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError), contextlib.closing(writer):
            writer.write(b"220 sink ESMTP\r\n")
            recipient = ""
            while line := await reader.readline():
                verb = line[:4].upper()
                if verb == b"EHLO":
                    writer.write(b"250-sink\r\n250 PIPELINING\r\n")
                elif verb == b"RCPT":
                    recipient = line.partition(b"<")[2].partition(b">")[0].decode()
                    writer.write(b"250 ok\r\n")
                elif verb == b"DATA":
                    writer.write(b"354 go on\r\n")
                    await reader.readuntil(b"\r\n.\r\n")
                    self._take(recipient)
                    writer.write(b"250 taken\r\n")
                else:
                    writer.write(b"221 bye\r\n" if verb == b"QUIT" else b"250 ok\r\n")

    def _take(self, recipient: str) -> None:
        self.count += 1
        if recipient.startswith(self._prefix):
            self.arrived[recipient] = time.perf_counter()
            if len(self.arrived) == self._expected:
                self.is_complete.set()
