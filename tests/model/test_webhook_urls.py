"""Where webhooks may go: the text of a URL, the names, the addresses, and what an operator may open."""

import ipaddress
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroad import errors
from postroad.model.units import destinations

PUBLIC = destinations.UrlRules()
ANYTHING = destinations.UrlRules(allow_insecure=True)
OWN = destinations.UrlRules(own_names=frozenset({"mail.example.com", "postroad.example", "93.184.216.34"}))

# URL, normal form, host, port, what the request asks for.
ACCEPTED = [
    ("https://hooks.example.org/told", "https://hooks.example.org/told", "hooks.example.org", 443, "/told"),
    ("https://hooks.example.org", "https://hooks.example.org", "hooks.example.org", 443, "/"),
    ("https://hooks.example.org?a=1", "https://hooks.example.org?a=1", "hooks.example.org", 443, "/?a=1"),
    ("HTTPS://Hooks.Example.ORG/A", "https://hooks.example.org/A", "hooks.example.org", 443, "/A"),
    ("https://hooks.example.org.:8443/", "https://hooks.example.org:8443/", "hooks.example.org", 8443, "/"),
    ("https://hooks.example.org:443/", "https://hooks.example.org/", "hooks.example.org", 443, "/"),
    ("https://hooks.example.org:65535/", "https://hooks.example.org:65535/", "hooks.example.org", 65535, "/"),
    ("https://bücher.example/%C3%A9?x=a%20b", "https://xn--bcher-kva.example/%C3%A9?x=a%20b", None, 443, None),
    ("https://xn--bcher-kva.example/", "https://xn--bcher-kva.example/", "xn--bcher-kva.example", 443, "/"),
    ("https://my_hooks.example.org/", "https://my_hooks.example.org/", "my_hooks.example.org", 443, "/"),
    ("https://1.example.org/", "https://1.example.org/", "1.example.org", 443, "/"),
    ("https://bad.cafe/", "https://bad.cafe/", "bad.cafe", 443, "/"),  # hex digits, and a top-level domain
    ("https://localhost.example.org/", "https://localhost.example.org/", "localhost.example.org", 443, "/"),
    ("https://my.notlocal/", "https://my.notlocal/", "my.notlocal", 443, "/"),
    ("https://93.184.216.34/", "https://93.184.216.34/", "93.184.216.34", 443, "/"),
    ("https://93.184.216.34./", "https://93.184.216.34/", "93.184.216.34", 443, "/"),
    ("https://[2606:4700::1111]:8443/x", "https://[2606:4700::1111]:8443/x", "2606:4700::1111", 8443, "/x"),
    ("https://[2606:4700:0:0:0:0:0:1111]/", "https://[2606:4700::1111]/", "2606:4700::1111", 443, "/"),
    ("https://[::ffff:93.184.216.34]/", None, None, 443, "/"),
    ("https://" + "a" * 63 + ".example.org/", None, None, 443, "/"),
    ("https://hooks.example.org/" + "a" * (2048 - 26), None, None, 443, None),
    ("https://hooks.example.org/a;b=c,d/(e)*'!$&+@~:..//?//?", None, None, 443, None),
]

REFUSED = {
    "HTTPS": [
        "http://example.com/",
        "ftp://example.com/",
        "file:///etc/passwd",
        "gopher://example.com/",
        "ws://example.com/",
        "http://127.0.0.1/",
    ],
    "not a valid URL": [
        "",
        "example.com",
        "//example.com/",
        "https:/example.com",
        "https:example.com",
        "javascript:alert(1)",
    ],
    "no host": ["https://", "https:///path", "https://:443/", "https://?x"],
    "space, a control": [
        " https://example.com/",
        "https://example.com/ ",
        "\thttps://example.com/",
        "\u00a0https://example.com/",
        "https://example.com/a\tb",
        "https://exa\rmple.com/",
        "https://example.com/\n",
        "https://example.com/\r\nX-Evil:1",
        "ht\ntps://example.com/",
        "https://example.com\x00.evil.example/",
        "https://example.com/\x00",
        "https://example.com/\x7f",
        "https://example.com/\u2028",
        "https://example.com\\@evil.example/",
        "https:\\\\example.com\\",
        "https://example.com/\ud800",
    ],
    "at most 2,048": [
        "https://ü.example.com/".ljust(2_048, "x"),
        "https://example.com/" + "a" * 10_000,
        "https://" + "a" * 10_000,
        "https://example.com/" + "ü" * 3000,
    ],
    "fragment": ["https://example.com/#", "https://example.com/#top", "https://example.com#@10.0.0.1/"],
    "username or password": [
        "https://user@example.com/",
        "https://user:word@example.com/",
        "https://@example.com/",
        "https://example.com@10.0.0.1/",
        "https://example.com:443@10.0.0.1/",
    ],
    "percent-encode it, for example": [
        "https://example.com/é",
        "https://example.com/%",
        "https://example.com/%zz",
        "https://example.com/<script>",
        'https://example.com/"',
        "https://example.com/{id}",
        "https://example.com/[1]",
    ],
    "the port": [
        "https://example.com:0/",
        "https://example.com:99999/",
        "https://example.com:65536/",
        "https://example.com:/",
        "https://example.com:-1/",
        "https://example.com:+443/",
        "https://example.com:0443/",
        "https://example.com:443x/",
        "https://example.com:４４３/",
        "https://example.com:" + "9" * 1000 + "/",
    ],
    "ambiguous": [
        "https://[::1/",
        "https://::1/",
        "https://example.com:443:443/",
        "https://[::1]x/",
        "https://a[::1]/",
        "https://[[::1]]/",
    ],
    "not a valid IP address": [
        "https://[not-ip]/",
        "https://[]/",
        "https://[fe80::1%25eth0]/",
        "https://[fe80::1%eth0]/",
        "https://[v1.fe80]/",
        "https://[127.0.0.1]/",
        "https://[1::2::3]/",
        "https://256.1.1.1/",
        "https://999.999.999.999/",
    ],
    "looks like a number": [
        "https://127.1/",
        "https://2130706433/",
        "https://0x7f000001/",
        "https://0X7F000001/",
        "https://0177.0.0.1/",
        "https://0/",
        "https://0./",
        "https://0x/",
        "https://127.0.0.01/",
        "https://0x7f.0.0.1/",
        "https://127.0.0x1/",
        "https://1.2.3.4.5/",
        "https://example.123/",
        "https://example.0xa/",
        "https://①②⑦.0.0.1/",
    ],
    "an invalid character": [
        "https://ｌocalhost/",
        "https://loc\u00adalhost/",
        "https://example。com/",
        "https://example．com/",
        "https://exam\u200bple.com/",
        "https://exam\u200dple.com/",
        "https://cafe\u0301.example/",  # not composed
        "https://①②⑦.example/",
        "https://127。0。0。1/",
        "https://１２７.0.0.１/",
        "https://\u212aelvin.example/",
        "https://BÜCHER.example/",
        "https://xn--/",
        "https://xn--a.example/",
        "https://xn--ocalhost-3w8d/",
        "https://ﬁ.example/",
        "https://℀.example/",
    ],
    "neither a host name": [
        "https://exa_mple..com/",
        "https://.example.com/",
        "https://example.com../",
        "https://-example.com/",
        "https://example-.com/",
        "https://%6cocalhost/",
        "https://127%2e0.0.1x/",
        "https://exa!mple.com/",
        "https://exa|mple.com/",
        "https://*.example.com/",
        "https://" + "a" * 64 + ".example.com/",
        "https://" + "a." * 127 + "com/",
        "https://" + "a" * 300 + ".com/",
        "https://" + "ü" * 300 + ".com/",
    ],
    "not a public host name": [
        "https://localhost/",
        "https://LOCALHOST/",
        "https://localhost./",
        "https://foo.localhost/",
        "https://localhost:8443/",
        "https://db/",
        "https://db:5432/",
        "https://com./",
        "https://printer.local/",
        "https://metadata.google.internal/",
        "https://internal/",
        "https://router.home.arpa/",
        "https://1.0.0.127.in-addr.arpa/",
        "https://example.onion/",
    ],
}

# What a literal, or an answer of DNS, must not be; every range is in test_destinations.py.
SPECIAL = [
    *("127.0.0.1", "0.0.0.0", "10.0.0.1", "192.168.1.1", "172.16.0.1", "169.254.169.254", "100.64.0.1", "198.18.0.1"),
    *("240.0.0.1", "224.0.0.1", "255.255.255.255", "192.0.2.1", "::", "::1", "::ffff:127.0.0.1", "::ffff:a9fe:a9fe"),
    *("64:ff9b::a9fe:a9fe", "2002:7f00:1::1", "::127.0.0.1", "fec0::1", "fe80::1", "fd00::1", "ff02::1", "2001:db8::1"),
]
PUBLIC_ADDRESSES = ["1.1.1.1", "93.184.216.34", "2606:4700::1111", "::ffff:93.184.216.34"]


def literal_url(address: str) -> str:
    return f"https://[{address}]/" if ":" in address else f"https://{address}/"


@pytest.mark.parametrize("url, normal, host, port, target", ACCEPTED)
def test_a_public_endpoint_is_accepted(
    url: str, normal: str | None, host: str | None, port: int, target: str | None
) -> None:
    found = destinations.parse_webhook_url(url, PUBLIC)
    assert (normal or found.url, host or found.host, port) == (found.url, found.host, found.port)
    assert found.target == (target or found.target)
    assert found.target.startswith("/")


@pytest.mark.parametrize("why, url", [(why, url) for why, urls in REFUSED.items() for url in urls])
def test_everything_else_is_refused_with_its_reason(why: str, url: str) -> None:
    with pytest.raises(errors.InvalidRequest, match=r"^url: ") as refusal:
        destinations.parse_webhook_url(url, PUBLIC)
    assert why in refusal.value.message
    assert refusal.value.message.isprintable()


@pytest.mark.parametrize(
    "url",
    [
        *("https://hooks.example.org:443@127.0.0.1/", "https://hooks.example.org\\@127.0.0.1/", "https:127.0.0.1/"),
        *("https://127.0.0.1\\@hooks.example.org/", "https://127.0.0.1;@hooks.example.org/", "https:///127.0.0.1/"),
        *("https://127.0.0.1%2ehooks.example.org/", "https://127.0.0.1%00.hooks.example.org/", "https://loc%61lhost/"),
        *("https://１２７.０.０.１/", "https://127.0.0.1./", "https://127.0.0.1../", "https://localhost\u200b/"),
        *("https://[::1%lo]/", "https://[0:0:0:0:0:0:0:1]/", "https://[::ffff:7f00:1]/", "https://[2001::f5ff:fffe]/"),
        *("https://[::ffff:0:127.0.0.1]/", "https://[64:ff9b:1::7f00:1]/", "https://a.svc.cluster.local/"),
    ],
)
def test_no_disguise_leads_inside(url: str) -> None:
    with pytest.raises(errors.InvalidRequest, match=r"^url: "):
        destinations.parse_webhook_url(url, PUBLIC)


@pytest.mark.parametrize("address", SPECIAL)
def test_a_special_address_is_refused_as_literal_and_as_answer(address: str) -> None:
    kind = destinations.why_url_blocked(address, "hooks.example.org", PUBLIC)
    assert kind is not None
    with pytest.raises(
        errors.InvalidRequest, match=rf"^url: \S+ is {kind}; webhooks are sent to public addresses only$"
    ):
        destinations.parse_webhook_url(literal_url(address), PUBLIC)


@pytest.mark.parametrize("address", PUBLIC_ADDRESSES)
def test_a_public_address_is_fine_as_literal_and_as_answer(address: str) -> None:
    assert destinations.why_url_blocked(address, "hooks.example.org", PUBLIC) is None
    assert destinations.parse_webhook_url(literal_url(address), PUBLIC).literal == ipaddress.ip_address(address)


@pytest.mark.parametrize(
    "url, authority",
    [
        ("https://hooks.example.org/", "hooks.example.org"),
        ("https://hooks.example.org:444/", "hooks.example.org:444"),
        ("https://[2606:4700::1111]:8443/", "[2606:4700::1111]:8443"),
        ("https://[2606:4700::1111]/", "[2606:4700::1111]"),
    ],
)
def test_the_host_header_names_a_port_that_is_not_the_usual_one(url: str, authority: str) -> None:
    assert destinations.parse_webhook_url(url, PUBLIC).authority == authority


@pytest.mark.parametrize(
    "host",
    ["postroad.example", "POSTROAD.example.", "api.postroad.example", "mail.example.com", "x.y.mail.example.com"],
)
def test_the_services_own_names_and_what_is_below_them_are_refused(host: str) -> None:
    with pytest.raises(errors.InvalidRequest, match="this service itself"):
        destinations.parse_webhook_url(f"https://{host}/", OWN)


@pytest.mark.parametrize("address", ["93.184.216.34", "[::ffff:93.184.216.34]"])
def test_the_services_own_address_is_refused(address: str) -> None:
    with pytest.raises(errors.InvalidRequest, match="this service itself"):
        destinations.parse_webhook_url(f"https://{address}/", OWN)


@pytest.mark.parametrize("host", ["example.com", "notpostroad.example", "hooks.example.com", "93.184.216.35"])
def test_names_beside_the_services_own_are_fine(host: str) -> None:
    assert destinations.parse_webhook_url(f"https://{host}/", OWN).host == host


def test_the_domain_that_the_service_stands_in_is_its_own_and_what_is_below_and_above_it_is_not() -> None:
    rules = destinations.UrlRules(own_names={"mail.shop.example.com"}, own_domain="shop.example.com")
    for host in ("shop.example.com", "Shop.Example.COM."):
        with pytest.raises(errors.InvalidRequest, match=r"shop\.example\.com is the domain of this service"):
            destinations.parse_webhook_url(f"https://{host}/", rules)
    for host in ("hooks.shop.example.com", "example.com", "notshop.example.com"):
        assert destinations.parse_webhook_url(f"https://{host}/", rules).host == host


def test_an_operator_who_allows_the_services_domain_may_have_endpoints_there() -> None:
    rules = destinations.UrlRules(
        own_names={"mail.shop.example"}, own_domain="shop.example", allow_private=("shop.example",)
    )
    assert destinations.parse_webhook_url("https://shop.example/hook", rules).host == "shop.example"
    with pytest.raises(errors.InvalidRequest, match="this service itself"):
        destinations.parse_webhook_url("https://mail.shop.example/", rules)


def test_an_allowed_network_opens_its_addresses_for_every_host() -> None:
    rules = destinations.UrlRules(allow_private=("10.1.0.0/16", "fd00::/8"))
    assert destinations.parse_webhook_url("https://10.1.2.3/", rules).host == "10.1.2.3"
    assert destinations.parse_webhook_url("https://[fd00::1]/", rules).host == "fd00::1"
    assert destinations.why_url_blocked("10.1.2.3", "hooks.example.org", rules) is None
    assert destinations.why_url_blocked("::ffff:10.1.2.3", "hooks.example.org", rules) is None
    assert destinations.why_url_blocked("10.2.0.1", "hooks.example.org", rules) == "a private address"
    for url in ("http://10.1.2.3/", "https://hooks.internal/", "https://10.2.0.1/"):
        with pytest.raises(errors.InvalidRequest):
            destinations.parse_webhook_url(url, rules)


def test_an_allowed_name_opens_what_it_leads_to() -> None:
    rules = destinations.UrlRules(allow_private=("Hooks.internal", "*.corp.example", "endpoint"))
    for host in ("hooks.internal", "a.corp.example", "b.a.corp.example", "endpoint"):
        assert destinations.parse_webhook_url(f"https://{host}/", rules).host == host
        assert destinations.why_url_blocked("10.0.0.1", host, rules) is None
    for host in ("other.internal", "x.hooks.internal", "db"):
        with pytest.raises(errors.InvalidRequest):
            destinations.parse_webhook_url(f"https://{host}/", rules)
    for host in ("corp.example", "evilcorp.example", "x.receiver"):
        assert destinations.why_url_blocked("10.0.0.1", host, rules) == "a private address"
    with pytest.raises(errors.InvalidRequest, match="https"):
        destinations.parse_webhook_url("http://hooks.internal/", rules)


def test_an_allowed_name_does_not_open_the_service_itself() -> None:
    rules = destinations.UrlRules(allow_private=("*.postroad.example",), own_names={"postroad.example"})
    with pytest.raises(errors.InvalidRequest, match="this service itself"):
        destinations.parse_webhook_url("https://api.postroad.example/", rules)


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1:9000/", "http://localhost/", "http://db/", "https://[::1]/", "http://169.254.169.254/x"],
)
def test_in_development_every_host_and_plain_http_is_fine(url: str) -> None:
    assert destinations.parse_webhook_url(url, ANYTHING).url == url
    assert destinations.why_url_blocked("127.0.0.1", "localhost", ANYTHING) is None


@pytest.mark.parametrize(
    "url",
    ["ftp://localhost/", "http://user@localhost/", "http://127.1/", "http://localhost/#x", "http://local host/"],
)
def test_in_development_a_url_is_still_a_url(url: str) -> None:
    with pytest.raises(errors.InvalidRequest):
        destinations.parse_webhook_url(url, ANYTHING)


def test_only_localhost_and_what_is_below_it_is_this_host() -> None:
    assert destinations.is_local_host("localhost")
    assert destinations.is_local_host("shop.localhost")
    assert not destinations.is_local_host("notlocalhost")


PIECES = st.sampled_from(
    [
        *("https", "http", "://", "/", "\\", "@", ":", "[", "]", "::1", "127", "0x7f", ".", "localhost", "example.com"),
        *("xn--", "%", "#", "?", "\u00ad", "ｌ", "。", "①", "\x00", " ", "ü", "0", "443", "internal", "\ud800"),
    ]
)


@given(st.one_of(st.text(), st.lists(PIECES, max_size=12).map("".join), st.text().map("https://{}/".format)))
def test_whatever_the_text_it_is_an_endpoint_or_a_refusal(url: str) -> None:
    try:
        found = destinations.parse_webhook_url(url, PUBLIC)
    except errors.InvalidRequest:
        return
    assert destinations.parse_webhook_url(found.url, PUBLIC) == found
    assert f"{found.authority}{found.target}".isascii()
    assert f"{found.authority}{found.target}".isprintable()
    assert " " not in found.target


@given(st.from_regex(r"[0-9xXa-fA-F.①。]{1,20}", fullmatch=True))
def test_an_accepted_host_is_never_an_address_in_disguise(host: str) -> None:
    try:
        found = destinations.parse_webhook_url(f"https://{host}/", PUBLIC)
    except errors.InvalidRequest:
        return
    if found.literal is None:
        with pytest.raises(OSError, match="illegal IP address"):
            socket.inet_aton(found.host)  # as lenient as a reader gets
    else:
        assert host.removesuffix(".") == str(found.literal)
        assert found.literal.is_global
