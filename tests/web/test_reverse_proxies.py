"""Behind proxies the caller is whoever stood before the first one that nobody trusts; nobody can pretend."""

import pytest

from postroad.web import reverse_proxies, routing

PROXIES = reverse_proxies.Proxies(["10.0.0.0/8", "127.0.0.1", "2001:db8:1::/48"])


def caller(peer: str, *fields: str) -> str:
    return PROXIES.client_address(
        peer, routing.Headers([(b"x-forwarded-for", field.encode("latin-1")) for field in fields])
    )


def test_a_trusted_proxy_is_known_by_its_address() -> None:
    assert PROXIES.is_trusted("10.1.2.3")
    assert PROXIES.is_trusted("::ffff:127.0.0.1")
    assert not PROXIES.is_trusted("192.0.2.1")


@pytest.mark.parametrize(
    "peer, fields, who",
    [
        ("192.0.2.1", (), "192.0.2.1"),
        ("192.0.2.1", ("203.0.113.9",), "192.0.2.1"),  # not a proxy of ours: its word is nothing
        ("127.0.0.1", (), "127.0.0.1"),
        ("127.0.0.1", ("203.0.113.9",), "203.0.113.9"),
        ("127.0.0.1", ("8.8.8.8, 203.0.113.9",), "203.0.113.9"),  # the first is the caller's own invention
        ("127.0.0.1", ("8.8.8.8", "203.0.113.9, 10.1.2.3"), "203.0.113.9"),
        ("127.0.0.1", ("203.0.113.9, nonsense",), "127.0.0.1"),
        ("127.0.0.1", ("nonsense, 10.1.2.3",), "10.1.2.3"),
        ("127.0.0.1", ("203.0.113.9:4711",), "203.0.113.9"),
        ("127.0.0.1", ("[2001:DB8:2::7]:4711",), "2001:db8:2::7"),
        ("2001:db8:1::5", ("2001:db8:2::7",), "2001:db8:2::7"),
        ("127.0.0.1", ("::ffff:203.0.113.9",), "203.0.113.9"),
        ("::ffff:127.0.0.1", ("203.0.113.9",), "203.0.113.9"),
        ("127.0.0.1", ("",), "127.0.0.1"),
        ("127.0.0.1", ("fe80::1%anything",), "127.0.0.1"),
        ("127.0.0.1", ("10.0.0.1, 10.0.0.2",), "10.0.0.1"),
        ("", ("203.0.113.9",), ""),
        ("127.0.0.1", (",".join(["10.0.0.1"] * 5_000),), "10.0.0.1"),
    ],
)
def test_the_caller_is_known(peer: str, fields: tuple[str, ...], who: str) -> None:
    assert caller(peer, *fields) == who
