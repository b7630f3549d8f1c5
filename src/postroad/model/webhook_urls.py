"""The SSRF guard of webhooks: rules for an endpoint's URL and for every address that its host resolves to.

The same rules apply to saving, testing and delivery. The URL is parsed strictly (RFC 3986): what two parsers could read
as different hosts is refused, so an accepted host is one public name or one address. An accepted URL is normalized and
can be used in a request as it is.
"""

import ipaddress
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Final

import idna
import msgspec

from postroad import errors
from postroad.model import destinations, special_addresses

MAX_CHARACTERS: Final = 2048
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
    networks: tuple[special_addresses.IpNetwork, ...] = field(init=False)

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
    literal: special_addresses.IpAddress | None

    @property
    def authority(self) -> str:
        """The value of the Host header (RFC 9110 section 7.2)."""
        return _authority(self.scheme, self.host, self.port)


def parse(url: str, rules: UrlRules) -> WebhookUrl:
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


def why_blocked(address: str, host: str, rules: UrlRules) -> str | None:
    """Why an address of a host is blocked, such as `a private address`; None when it is allowed."""
    if rules.allow_insecure:
        return None
    kind = special_addresses.why_blocked(address, allowed=rules.networks)
    return None if kind is None or rules.allows_name(host) else kind


def is_local_host(host: str) -> bool:
    """Whether a name means this host, whatever DNS says (RFC 6761 section 6.3)."""
    return is_below(host, LOCALHOST)


def is_below(host: str, name: str) -> bool:
    """Whether a host is this name or a subdomain of it."""
    return host == name or host.endswith(f".{name}")


def _check_length(url: str) -> None:
    if len(url) > MAX_CHARACTERS:
        raise _refusal(f"must be at most {MAX_CHARACTERS:,} characters")


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


def _literal(host: str) -> special_addresses.IpAddress | None:
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
    if not destinations.is_host_name(name):
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


def _check_literal(literal: special_addresses.IpAddress, rules: UrlRules) -> None:
    if not rules.allow_insecure and str(special_addresses.effective(literal)) in rules.own_names:
        raise _refusal(f"{literal} is this service itself; use the URL of your own endpoint")
    kind = why_blocked(str(literal), str(literal), rules)
    if kind is not None:
        raise _refusal(f"{literal} is {kind}; webhooks are sent to public addresses only")


def _network(entry: str) -> special_addresses.IpNetwork | None:
    try:
        return ipaddress.ip_network(entry)
    except ValueError:
        return None  # a name


def _refusal(why: str) -> errors.InvalidRequest:
    return errors.InvalidRequest(f"url: {why}")
