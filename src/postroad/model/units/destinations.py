"""Where connections may go: host names, URLs of webhooks, and the addresses that are not public hosts (SSRF guard)."""

import hashlib
import ipaddress
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

import idna
import msgspec

from postroad import errors

# The addresses of the SSRF guard: which ones mail and webhooks must not go to, because they are not public hosts.
#
# Customers and strangers choose where mail and webhooks go, so a name of theirs must not lead into the operator's
# networks. The tables have IANA's special-purpose registries (RFC 6890) and everything that is not unicast. They are
# explicit because the standard library has another definition of a global address: it includes multicast, site-local
# addresses and private addresses embedded in IPv6. The first matching network decides.

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
IpNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network

_BLOCKED_IPV4: Final = tuple(
    (ipaddress.IPv4Network(network), kind)
    for network, kind in (
        ("0.0.0.0/8", "an address of this host"),  # RFC 1122 section 3.2.1.3; Linux takes 0.0.0.0 for loopback
        ("10.0.0.0/8", "a private address"),  # RFC 1918
        ("100.64.0.0/10", "a provider's internal address"),  # carrier-grade NAT, RFC 6598; clouds use it inside
        ("127.0.0.0/8", "a loopback address"),  # RFC 1122 section 3.2.1.3
        ("169.254.0.0/16", "a link-local address"),  # RFC 3927; where clouds keep their metadata
        ("168.63.129.16/32", "a provider's internal address"),  # Azure's platform, on every virtual machine
        ("172.16.0.0/12", "a private address"),  # RFC 1918
        ("192.0.0.0/24", "a reserved address"),  # RFC 6890 section 2.1
        ("192.0.2.0/24", "a documentation address"),  # RFC 5737
        ("192.88.99.0/24", "a reserved address"),  # relays of 6to4, RFC 7526
        ("192.168.0.0/16", "a private address"),  # RFC 1918
        ("198.18.0.0/15", "a benchmarking address"),  # RFC 2544
        ("198.51.100.0/24", "a documentation address"),  # RFC 5737
        ("203.0.113.0/24", "a documentation address"),  # RFC 5737
        ("224.0.0.0/4", "a multicast address"),  # RFC 5771
        ("255.255.255.255/32", "the broadcast address"),  # RFC 8190
        ("240.0.0.0/4", "a reserved address"),  # RFC 1112 section 4
    )
)
_BLOCKED_IPV6: Final = tuple(
    (ipaddress.IPv6Network(network), kind)
    for network, kind in (
        ("::/128", "an address of this host"),  # RFC 4291 section 2.5.2
        ("::1/128", "a loopback address"),  # RFC 4291 section 2.5.3
        ("::/96", "an IPv6 address that embeds an IPv4 address"),  # RFC 4291 section 2.5.5.1
        ("64:ff9b::/96", "an IPv6 address that embeds an IPv4 address"),  # NAT64, RFC 6052
        ("64:ff9b:1::/48", "an IPv6 address that embeds an IPv4 address"),  # NAT64, RFC 8215
        ("2001::/32", "an IPv6 address that embeds an IPv4 address"),  # Teredo, RFC 4380
        ("2001::/23", "a reserved address"),  # benchmarks, ORCHID and other protocols, RFC 2928
        ("2001:db8::/32", "a documentation address"),  # RFC 3849
        ("2002::/16", "an IPv6 address that embeds an IPv4 address"),  # 6to4, RFC 3056
        ("3fff::/20", "a documentation address"),  # RFC 9637
        ("fc00::/7", "a private address"),  # RFC 4193
        ("fe80::/10", "a link-local address"),  # RFC 4291 section 2.5.6
        ("fec0::/10", "a private address"),  # site-local, RFC 3879
        ("ff00::/8", "a multicast address"),  # RFC 4291 section 2.7
    )
)
# All that IANA has handed out for public hosts; the discard prefix 100::/64 and segment ids 5f00::/16 lie outside.
_PUBLIC_IPV6: Final = ipaddress.IPv6Network("2000::/3")


def why_blocked(address: str, *, allowed: Iterable[IpNetwork]) -> str | None:
    """The kind of an address that nothing may be sent to; None when it is public, or in an allowed network."""
    ip = effective(ipaddress.ip_address(address))
    kind = kind_of(ip)
    return None if kind is None or any(ip in network for network in allowed) else kind


def kind_of(address: IpAddress) -> str | None:
    """The kind of a special address; None when it can be a public host."""
    if isinstance(address, ipaddress.IPv4Address):
        return next((kind for network, kind in _BLOCKED_IPV4 if address in network), None)
    for network, kind in _BLOCKED_IPV6:
        if address in network:
            return kind
    return None if address in _PUBLIC_IPV6 else "a reserved address"


def effective(address: IpAddress) -> IpAddress:
    """The address that a connection would go to: the inner one of an IPv4-mapped address (RFC 4291 section 2.5.5.2)."""
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


MAX_QUEUE_NAME_CHARACTERS: Final = 200
# 64 bits: too many to find a collision.
DIGEST_DIGITS: Final = 16

_MAX_NAME_CHARACTERS: Final = 253
# Letters, digits and hyphens, and underscores, which are not allowed but in use. A last label of digits only is an
# address (RFC 3696 section 2).
_HOST_NAME: Final = re.compile(
    r"(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)*(?![0-9]+$)[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
)
_IPV6_TAG: Final = "ipv6:"


def is_host_name(name: str) -> bool:
    """Whether a name, in lower case and without a final dot, can be that of a host."""
    return len(name) <= _MAX_NAME_CHARACTERS and _HOST_NAME.fullmatch(name) is not None


def literal(domain: str) -> IpAddress | None:
    """The address in an address literal, `[192.0.2.1]` or `[IPv6:2001:db8::1]` (RFC 5321 section 4.1.3)."""
    inside = domain[1:-1] if domain.startswith("[") and domain.endswith("]") else ""
    try:
        if inside.lower().startswith(_IPV6_TAG):
            return ipaddress.IPv6Address(inside[len(_IPV6_TAG) :])
        return ipaddress.IPv4Address(inside)
    except ValueError:
        return None


def provider_queue_name(hosts: Collection[str]) -> str:
    """The same name for the same set of mail hosts, and for no other.

    A long name is shortened to the first host, the number of others and a digest of all, so that nobody can join the
    provider queue of somebody else with hosts that are cut off.
    """
    names = sorted(set(hosts))
    name = ",".join(names)
    if len(name) <= MAX_QUEUE_NAME_CHARACTERS:
        return name
    others = f"+{len(names) - 1}#{hashlib.sha256(name.encode()).hexdigest()[:DIGEST_DIGITS]}"
    return names[0][: MAX_QUEUE_NAME_CHARACTERS - len(others)] + others


# The SSRF guard of webhooks: rules for an endpoint's URL and for every address that its host resolves to.
#
# The same rules apply to saving, testing and delivery. The URL is parsed strictly (RFC 3986): what two parsers could
# read as different hosts is refused, so an accepted host is one public name or one address. An accepted URL is
# normalized and can be used in a request as it is.

MAX_URL_CHARACTERS: Final = 2048
# RFC 1035 section 2.3.4, and a final dot; what is longer is not even converted.
MAX_HOST_CHARACTERS: Final = 254
DEFAULT_PORTS: Final = {"https": 443, "http": 80}
MAX_PORT: Final = 65_535
LOCALHOST: Final = "localhost"

# Names that are never public hosts: RFC 6761, RFC 6762, RFC 7686, RFC 8375, and ICANN's choice for private networks.
NON_PUBLIC_SUFFIXES: Final = (LOCALHOST, "local", "internal", "arpa", "onion")

_URL: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/?#]*)([^#]*)(#.*)?", re.DOTALL)
_AUTHORITY: Final = re.compile(r"(\[[^\]]*\]|[^:\[\]]*)(?::([^:]*))?")
_PORT: Final = re.compile(r"[1-9][0-9]{0,4}")
# RFC 3986 section 2: unreserved and reserved characters but '#', '[' and ']', and octets in hex.
_TARGET: Final = re.compile(r"(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*")
_UNSAFE: Final = re.compile(r"[\s\x00-\x20\x7f-\x9f\\\ud800-\udfff]")
_IPV4: Final = re.compile(r"(?:(?:0|[1-9][0-9]{0,2})\.){3}(?:0|[1-9][0-9]{0,2})")
_IPV6: Final = re.compile(r"[0-9A-Fa-f:.]+")
# Some parsers read a name that ends like this as an IPv4 address: octal, hexadecimal or shortened.
_NUMBER_AT_THE_END: Final = re.compile(r"(?:.*\.)?(?:[0-9]+|0[xX][^.]*)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlRules:
    """What an installation allows: networks and names of private endpoints, or everything."""

    allow_insecure: bool = False
    allow_private: Sequence[str] = ()
    own_names: Collection[str] = ()
    # The domain that the service's public name stands in. What else is below it may well be the operator's endpoints.
    own_domain: str = ""
    networks: tuple[IpNetwork, ...] = field(init=False)

    def __post_init__(self) -> None:
        """Read the networks once."""
        found = (_network(entry) for entry in self.allow_private)
        object.__setattr__(self, "networks", tuple(network for network in found if network is not None))

    def allows_name(self, host: str) -> bool:
        """Whether the operator allows this host, or a suffix of it, as a private endpoint."""
        names = (entry.lower().rstrip(".") for entry in self.allow_private)
        return any(host == name or (name.startswith("*.") and host.endswith(name[1:])) for name in names)

    def is_own(self, host: str) -> bool:
        """Whether this is a name of the service or a subdomain of one."""
        return any(is_below(host, name) for name in self.own_names)


class WebhookUrl(msgspec.Struct, frozen=True, kw_only=True):
    """An accepted URL, normalized. The host is in lower case and A-labels, without brackets."""

    url: str
    scheme: str
    host: str
    port: int
    target: str  # what a request asks for: path and query
    literal: IpAddress | None

    @property
    def authority(self) -> str:
        """The value of the Host header (RFC 9110 section 7.2)."""
        return _authority(self.scheme, self.host, self.port)


def parse_webhook_url(url: str, rules: UrlRules) -> WebhookUrl:
    """The checked URL. Raises InvalidRequest with what to do."""
    scheme, authority, rest = _parts(url)
    if scheme != "https" and not (scheme == "http" and rules.allow_insecure):
        raise _refusal("must use HTTPS; write https://")
    host, port = _host_and_port(authority, scheme)
    literal = _literal(host)
    name = _name(host) if literal is None else str(literal)
    if literal is not None:
        _check_literal(literal, rules)
    else:
        _check_name(name, rules)
    normal = f"{scheme}://{_authority(scheme, name, port)}{rest}"
    _check_length(normal)  # A-labels are longer than what was written
    return WebhookUrl(
        url=normal,
        scheme=scheme,
        host=name,
        port=port,
        target=rest if rest.startswith("/") else f"/{rest}",
        literal=literal,
    )


def why_url_blocked(address: str, host: str, rules: UrlRules) -> str | None:
    """Why an address of a host is blocked, such as `a private address`; None when it is allowed."""
    if rules.allow_insecure:
        return None
    kind = why_blocked(address, allowed=rules.networks)
    return None if kind is None or rules.allows_name(host) else kind


def is_local_host(host: str) -> bool:
    """Whether a name means this host, whatever DNS says (RFC 6761 section 6.3)."""
    return is_below(host, LOCALHOST)


def is_below(host: str, name: str) -> bool:
    """Whether a host is this name or a subdomain of it."""
    return host == name or host.endswith(f".{name}")


def _check_length(url: str) -> None:
    if len(url) > MAX_URL_CHARACTERS:
        raise _refusal(f"must be at most {MAX_URL_CHARACTERS:,} characters")


def _parts(url: str) -> tuple[str, str, str]:
    """Scheme, authority and the rest, each with valid characters only."""
    _check_length(url)
    if _UNSAFE.search(url):
        raise _refusal("contains a space, a control character or a backslash; remove it or percent-encode it")
    match = _URL.fullmatch(url)
    if match is None:
        raise _refusal("is not a valid URL; write one such as https://hooks.example.com/postroad")
    scheme, authority, rest, fragment = match.groups()
    if fragment is not None:
        raise _refusal("must not have a fragment; remove '#' and everything after it")
    if "@" in authority:
        raise _refusal("must not contain a username or password; remove everything before '@'")
    if not _TARGET.fullmatch(rest):
        raise _refusal("the path or query contains an invalid character; percent-encode it, for example %C3%A9")
    return scheme.lower(), authority, rest


def _authority(scheme: str, host: str, port: int) -> str:
    shown = f"[{host}]" if ":" in host else host
    return shown if port == DEFAULT_PORTS[scheme] else f"{shown}:{port}"


def _host_and_port(authority: str, scheme: str) -> tuple[str, int]:
    match = _AUTHORITY.fullmatch(authority)
    if match is None:
        raise _refusal("host and port are ambiguous; put an IPv6 address in brackets")
    host, port = match.groups()
    if not host:
        raise _refusal("has no host")
    if port is None:
        return host, DEFAULT_PORTS[scheme]
    if not _PORT.fullmatch(port) or int(port) > MAX_PORT:
        raise _refusal(f"the port must be a number from 1 to {MAX_PORT}")
    return host, int(port)


def _literal(host: str) -> IpAddress | None:
    """The IP address in its canonical spelling; None when the host is a name."""
    try:
        if host.startswith("["):
            # No zone, which would name an interface of this host.
            return ipaddress.IPv6Address(host[1:-1] if _IPV6.fullmatch(host[1:-1]) else "")
        undotted = host.removesuffix(".")
        if _IPV4.fullmatch(undotted):
            return ipaddress.IPv4Address(undotted)
    except ValueError:
        raise _refusal("the host is not a valid IP address; write one such as 192.0.2.1 or [2001:db8::1]") from None
    if _NUMBER_AT_THE_END.fullmatch(undotted):
        raise _refusal(
            "the host looks like a number; write an IPv4 address as four decimal numbers without leading zeros"
        )
    return None


def _name(host: str) -> str:
    """A host name in lower case and A-labels, without a final dot.

    Only ASCII capitals are mapped: full-width letters, soft hyphens and other characters that a lenient parser would
    turn into a different name are refused (RFC 5892).
    """
    lower = "".join(
        character.lower() if character.isascii() else character for character in host[: MAX_HOST_CHARACTERS + 1]
    )
    name = lower.removesuffix(".")
    if not name.isascii() or "xn--" in name:
        try:
            name = idna.encode(name, strict=True).decode("ascii") if len(lower) <= MAX_HOST_CHARACTERS else ""
        except UnicodeError:
            raise _refusal(
                "the host name contains an invalid character; write it in lower case, or in ASCII with xn--"
            ) from None
    if not is_host_name(name):
        raise _refusal("the host is neither a host name nor an IP address")
    return name


def _check_name(name: str, rules: UrlRules) -> None:
    if rules.allow_insecure:
        return
    if rules.is_own(name):
        raise _refusal(f"{name} is this service itself; use the URL of your own endpoint")
    if rules.allows_name(name):
        return
    if name == rules.own_domain:
        raise _refusal(f"{name} is the domain of this service; use the URL of your own endpoint")
    if "." not in name or any(is_below(name, suffix) for suffix in NON_PUBLIC_SUFFIXES):
        raise _refusal(f"{name} is not a public host name; webhooks are sent to public hosts only")


def _check_literal(literal: IpAddress, rules: UrlRules) -> None:
    if not rules.allow_insecure and str(effective(literal)) in rules.own_names:
        raise _refusal(f"{literal} is this service itself; use the URL of your own endpoint")
    kind = why_url_blocked(str(literal), str(literal), rules)
    if kind is not None:
        raise _refusal(f"{literal} is {kind}; webhooks are sent to public addresses only")


def _network(entry: str) -> IpNetwork | None:
    try:
        return ipaddress.ip_network(entry)
    except ValueError:
        return None  # a name


def _refusal(why: str) -> errors.InvalidRequest:
    return errors.InvalidRequest(f"url: {why}")
