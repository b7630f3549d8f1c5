"""Frames over a stream: whole, in order, however the stream is cut, and the end is reported."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest_asyncio

from postroad.network import framing

TIMEOUT_SECONDS = 600.0


@dataclass(slots=True)
class Receiver:
    """What one end has heard."""

    heard: list[bytes] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    is_over: bool = False

    def receive(self, frame: memoryview) -> None:
        self.heard.append(bytes(frame))
        self.changed.set()

    def end(self) -> None:
        self.is_over = True
        self.changed.set()

    async def hears(self, *expected: bytes) -> None:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            while len(self.heard) < len(expected):
                self.changed.clear()
                await self.changed.wait()
        assert self.heard == list(expected)

    async def hears_the_end(self) -> None:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            while not self.is_over:
                self.changed.clear()
                await self.changed.wait()


@dataclass(frozen=True, slots=True)
class Talk:
    """Two ends: one speaks frames, and the other bytes."""

    ear: Receiver
    here: framing.FrameProtocol
    there: framing.SocketEnd

    async def say(self, data: bytes) -> None:
        await asyncio.get_running_loop().sock_sendall(self.there, data)


@pytest_asyncio.fixture
async def talk() -> AsyncIterator[Talk]:
    ours, theirs = framing.pair()
    theirs.settimeout(0)
    ear = Receiver()
    here = await framing.connect(ours, ear.receive, ear.end)
    with theirs:
        yield Talk(ear, here, theirs)
        here.close()
        await ear.hears_the_end()


async def test_a_frame_arrives_whole_in_whatever_pieces_it_comes(talk: Talk) -> None:
    for octet in b"\x00\x00\x00\x05hello\x00\x00\x00\x00":
        await talk.say(bytes([octet]))
        await asyncio.sleep(0)
    await talk.ear.hears(b"hello", b"")


async def test_frames_that_come_together_are_taken_apart(talk: Talk) -> None:
    await talk.say(b"\x00\x00\x00\x02ab\x00\x00\x00\x01c\x00\x00\x00\x03de")
    await talk.ear.hears(b"ab", b"c")
    await talk.say(b"f")
    await talk.ear.hears(b"ab", b"c", b"def")


async def test_a_large_frame_is_sent_with_its_length(talk: Talk) -> None:
    content = b"x" * 5_000_000
    talk.here.send(content)
    talk.here.send(b"after it")
    got = bytearray()
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(TIMEOUT_SECONDS):
        while len(got) < len(content) + 16:
            got += await loop.sock_recv(talk.there, 1_000_000)
    assert got == len(content).to_bytes(4, "big") + content + b"\x00\x00\x00\x08after it"


async def test_what_was_sent_before_the_end_arrives(talk: Talk) -> None:
    talk.here.send(b"good-bye")
    talk.here.close()
    await talk.ear.hears_the_end()
    assert await asyncio.get_running_loop().sock_recv(talk.there, 100) == b"\x00\x00\x00\x08good-bye"
    talk.here.send(b"nobody hears this")


async def test_a_length_beyond_all_bounds_ends_the_stream(talk: Talk) -> None:
    await talk.say(b"\xff\xff\xff\xff")
    await talk.ear.hears_the_end()
    assert talk.ear.heard == []


async def test_the_end_of_the_other_side_is_reported(talk: Talk) -> None:
    await talk.say(b"\x00\x00\x00\x02hi\x00\x00")
    talk.there.close()
    await talk.ear.hears_the_end()
    assert talk.ear.heard == [b"hi"]
