"""Lines and content out of a buffer: complete or not at all, within their limits, and without looking twice."""

import hypothesis
import pytest
from hypothesis import strategies as st

from postroad.protocol.smtp import server_input


def test_a_line_is_taken_when_it_is_complete() -> None:
    buffer = bytearray(b"NOOP\r")
    assert server_input.take_line(buffer, 10) is None
    buffer += b"\nQUIT\r\n"
    assert server_input.take_line(buffer, 10) == b"NOOP\r\n"
    assert buffer == b"QUIT\r\n"


def test_nothing_is_given_of_a_line_that_is_too_long_and_little_is_kept() -> None:
    buffer = bytearray()
    for _ in range(10):
        buffer += b"x" * 50
        assert server_input.take_line(buffer, 10) is None
        assert len(buffer) <= 11
    buffer += b"\r\nNOOP\r\n"
    assert server_input.take_line(buffer, 10) == b""
    assert server_input.take_line(buffer, 10) == b"NOOP\r\n"


def test_content_is_taken_at_its_end_and_what_follows_is_left() -> None:
    reader = server_input.DotStuffed(100)
    buffer = bytearray(b"\r\na\r\n..b\r\n.\r\nQUIT\r\n")
    assert reader.read(buffer)
    assert reader.content() == b"a\r\n.b\r\n"
    assert buffer == b"QUIT\r\n"


def test_an_end_that_comes_octet_by_octet_is_found() -> None:
    reader = server_input.DotStuffed(10)
    buffer = bytearray(b"\r\n")
    for octet in b"x" * 100 + b"\r\n.\r":
        buffer.append(octet)
        assert not reader.read(buffer)
    buffer += b"\n"
    assert reader.read(buffer)
    assert (reader.content(), reader.is_too_large) == (b"", True)


def test_the_limit_is_exact() -> None:
    for size, is_too_large in ((100, False), (101, True)):
        reader = server_input.DotStuffed(100)
        assert reader.read(bytearray(b"\r\n" + b"x" * (size - 2) + b"\r\n.\r\n"))
        assert reader.is_too_large is is_too_large


def test_chunks_are_put_together() -> None:
    chunks = server_input.Chunks(10)
    chunks.begin(3, is_last=False)
    buffer = bytearray(b"ab")
    assert not chunks.read(buffer)
    buffer += b"cdefg"
    assert chunks.read(buffer)
    assert buffer == b"defg"
    chunks.begin(4, is_last=True)
    assert chunks.read(buffer)
    assert (chunks.content(), chunks.is_complete, chunks.is_too_large) == (b"abcdefg", True, False)
    chunks.begin(4, is_last=True)
    assert chunks.is_too_large
    assert chunks.read(bytearray(b"wxyz"))
    assert chunks.content() == b""


@pytest.mark.parametrize("content", [b"a\n", b"\na", b"a\r", b"a\rb\r\n", b"\n\r", b"\r\r\n", b"a\r\n\n"])
def test_a_cr_or_lf_alone_is_noticed(content: bytes) -> None:
    assert server_input.has_bare_line_ends(content)
    assert not server_input.has_bare_line_ends(b"a\r\n\r\nb")


@pytest.mark.parametrize(
    "content, normal",
    [
        (b"", b""),
        (b"a", b"a"),
        (b"a\r\n\r\nb", b"a\r\n\r\nb"),
        (b"a\n", b"a\r\n"),
        (b"\n\na\r\n\n", b"\r\n\r\na\r\n\r\n"),
        (b"\r", None),
        (b"a\r\r\n", None),
        (b"a\rb\n", None),
        (b"\n\r", None),
    ],
)
def test_a_bare_lf_becomes_a_line_end_and_a_bare_cr_has_no_normal_form(content: bytes, normal: bytes | None) -> None:
    assert server_input.normalise(content) == normal


@hypothesis.given(st.lists(st.sampled_from([b"\r", b"\n", b"\r\n", b".", b"\x85", b"\x0b"]), max_size=12).map(b"".join))
def test_nothing_but_cr_lf_ends_a_line(content: bytes) -> None:
    without = content.replace(b"\r\n", b"")
    assert server_input.has_bare_line_ends(content) == (b"\r" in without or b"\n" in without)
    assert (server_input.normalise(content) is None) == (b"\r" in without)


# Content that is too large for memory while it arrives.


class CountedStore(server_input.MemoryStore):
    """A store with room for so many octets."""

    room = 10**9
    opened: list["CountedStore"]

    def __init__(self) -> None:
        super().__init__()
        self.octets = 0
        self.is_closed = False
        self.opened.append(self)

    def write(self, part: bytes) -> bool:
        self.octets += len(part)
        return self.octets <= self.room and super().write(part)

    def close(self) -> None:
        self.is_closed = True
        super().close()


@pytest.fixture
def stores(monkeypatch: pytest.MonkeyPatch) -> list[CountedStore]:
    """Eight octets are kept in memory; the stores that are opened."""
    monkeypatch.setattr(server_input, "IN_MEMORY_OCTETS", 8)
    opened: list[CountedStore] = []
    monkeypatch.setattr(CountedStore, "opened", opened, raising=False)
    return opened


@hypothesis.settings(suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture])
@hypothesis.given(
    st.lists(st.sampled_from([b"a", b".", b"\r\n", b"\n", b"..", b"\r\n..\r\n", b"long text"]), max_size=30),
    st.lists(st.integers(1, 40), min_size=1, max_size=9),
)
def test_a_store_changes_nothing_of_a_content(stores: list[CountedStore], parts: list[bytes], sizes: list[int]) -> None:
    data = b"".join(parts)
    if b"\r\n.\r\n" in b"\r\n" + data + b"\r\n":
        return
    sent = b"\r\n" + data + b"\r\n.\r\nQUIT\r\n"
    whole, pieces = server_input.DotStuffed(200), server_input.DotStuffed(200, CountedStore)
    rest, buffer = bytearray(sent), bytearray()
    assert whole.read(rest)
    at = turn = 0
    while not pieces.read(buffer):
        size = sizes[turn % len(sizes)]
        buffer += sent[at : at + size]
        at, turn = at + size, turn + 1
    assert buffer + sent[at:] == b"QUIT\r\n" == bytes(rest)
    assert (pieces.content(), pieces.is_too_large) == (whole.content(), whole.is_too_large)
    assert all(store.is_closed for store in stores)


def test_little_of_a_large_content_is_in_memory_while_it_arrives(stores: list[CountedStore]) -> None:
    reader, buffer = server_input.DotStuffed(1000, CountedStore), bytearray(b"\r\n")
    for _ in range(50):
        buffer += b"x" * 10
        assert not reader.read(buffer)
        assert len(buffer) <= 8
    assert stores[0].octets >= 490
    buffer += b"\r\n.\r\n"
    assert reader.read(buffer)
    assert reader.content() == b"x" * 500 + b"\r\n"
    assert (len(stores), stores[0].is_closed) == (1, True)


def test_a_content_without_room_is_discarded_and_its_end_found(
    stores: list[CountedStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CountedStore, "room", 40)
    reader, buffer = server_input.DotStuffed(1000, CountedStore), bytearray(b"\r\n")
    for _ in range(20):
        buffer += b"x" * 10
        assert not reader.read(buffer)
    buffer += b"\r\n.\r\nQUIT\r\n"
    assert reader.read(buffer)
    assert (reader.stored.is_incomplete, reader.content(), bytes(buffer)) == (True, b"", b"QUIT\r\n")
    assert (len(stores), stores[0].is_closed) == (1, True)


def test_chunks_go_to_the_store_too(stores: list[CountedStore]) -> None:
    chunks = server_input.Chunks(100, CountedStore)
    for number, is_last in ((1, False), (2, False), (3, True)):
        chunks.begin(20, is_last=is_last)
        assert chunks.read(bytearray(b"%d" % number * 20))
    assert chunks.content() == b"1" * 20 + b"2" * 20 + b"3" * 20
    assert (len(stores), stores[0].is_closed) == (1, True)


def test_chunks_that_are_too_large_leave_nothing_in_the_store(stores: list[CountedStore]) -> None:
    chunks = server_input.Chunks(30, CountedStore)
    chunks.begin(20, is_last=False)
    assert chunks.read(bytearray(b"x" * 20))
    chunks.begin(11, is_last=True)
    assert (chunks.is_too_large, stores[0].is_closed, chunks.read(bytearray(b"y" * 11))) == (True, True, True)
    assert chunks.content() == b""
