"""A head is a request, or is refused before anyone could read it differently."""

import pytest

from postroad.network.http import http_messages

LIMITS = http_messages.Limits(head_bytes=100, header_fields=3)
HOST = (b"host", b"x")


def test_a_plain_head_is_taken() -> None:
    assert http_messages.check_request([HOST], version="1.1", limits=LIMITS) is False
    assert http_messages.check_request([], version="1.0", limits=LIMITS) is False


@pytest.mark.parametrize(
    "value, version, waits", [(b"100-Continue", "1.1", True), (b"100-continue", "1.0", False), (b"more", "1.1", False)]
)
def test_only_http_1_1_waits_to_continue(value: bytes, version: str, waits: bool) -> None:  # noqa: FBT001
    assert http_messages.check_request([HOST, (b"expect", value)], version=version, limits=LIMITS) is waits


@pytest.mark.parametrize(
    "headers, version",
    [
        ([HOST], "2.0"),
        ([HOST], "0.9"),
        ([], "1.1"),
        ([HOST, HOST], "1.1"),
        ([HOST, HOST], "1.0"),
        ([HOST, (b"transfer-encoding", b"gzip, chunked")], "1.1"),
        ([(b"transfer-encoding", b"chunked")], "1.0"),
        ([HOST, (b"a", b""), (b"b", b""), (b"c", b"")], "1.1"),
        ([HOST, (b"a", b"x" * 100)], "1.1"),
    ],
)
def test_a_head_that_is_ambiguous_or_too_large_is_refused(headers: http_messages.Headers, version: str) -> None:
    with pytest.raises(http_messages.BadRequest):
        http_messages.check_request(headers, version=version, limits=LIMITS)


@pytest.mark.parametrize(
    "url, target",
    [
        (b"/", ("/", b"/", b"")),
        (b"*", ("*", b"*", b"")),
        (b"/a%20b?c=%20", ("/a b", b"/a%20b", b"c=%20")),
        (b"http://x.test/a?b#c", ("/a", b"/a", b"b")),
    ],
)
def test_a_target_is_split(url: bytes, target: tuple[str, bytes, bytes]) -> None:
    assert http_messages.target(url) == target


@pytest.mark.parametrize("url", [b"http://x.test", b"x.test:443", "/é".encode(), b""])
def test_a_target_without_a_path_is_refused(url: bytes) -> None:
    with pytest.raises(http_messages.BadRequest):
        http_messages.target(url)


def test_an_offer_to_upgrade_is_taken_out_and_the_end_of_the_connection_stays() -> None:
    headers = [HOST, (b"connection", b"Upgrade, Close"), (b"upgrade", b"h2c"), (b"a", b"b")]
    head = http_messages.without_upgrade(headers, method=b"GET", url=b"/x", version="1.1")
    assert head == b"GET /x HTTP/1.1\r\nhost: x\r\na: b\r\nconnection: close\r\n\r\n"
