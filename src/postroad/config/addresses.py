"""Network addresses in settings: `host:port`, IP addresses, networks and host names."""

import ipaddress
import re
from collections.abc import Iterable
from typing import Final, NamedTuple
from urllib import parse

from postroad.config.sources import ConfigError

MAX_PORT: Final = 65_535
DNS_PORT: Final = 53
_LOCAL_PART = re.compile(r"[A-Za-z0-9_+-]+(\.[A-Za-z0-9_+-]+)*")
_HOST_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?")


class Endpoint(NamedTuple):
    """A host and a port; port 0 lets the system choose a free port to listen on."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def endpoint(text: str, *, name: str) -> Endpoint:
    """Parse `host:port`, with an IPv6 host in brackets (RFC 3986 section 3.2.2)."""
    host, _, port = text.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    if not (_is_ipv6(host[1:-1]) if bracketed else is_host_name(host)):
        raise ConfigError(
            f"{name}: {text!r} is not an address; write host:port, for example 127.0.0.1:8025 or [::1]:8025"
        )
    if not (port.isascii() and port.isdigit() and int(port) <= MAX_PORT):
        raise ConfigError(
            f"{name}: {text!r} has no port between 0 and {MAX_PORT}; write host:port, for example 127.0.0.1:8025"
        )
    return Endpoint(host[1:-1] if bracketed else host, int(port))


def remote(text: str, *, name: str) -> Endpoint:
    """Parse the `host:port` of another server."""
    where = endpoint(text, name=name)
    if not where.port:
        raise ConfigError(f"{name}: port 0 is not a valid destination; write host:port")
    return where


def dns_server(text: str) -> Endpoint:
    """Parse a DNS server, `address` or `address:port`; an IPv6 address with a port is in brackets."""
    if is_address(text):
        return Endpoint(text, DNS_PORT)
    where = remote(text, name="delivery.resolvers")
    if not is_address(where.host):
        raise ConfigError(f"delivery.resolvers: {where.host!r} is not an IP address; write the address of the resolver")
    return where


def is_address(text: str) -> bool:
    """Whether this is an IP address."""
    try:
        return bool(ipaddress.ip_address(text))
    except ValueError:
        return False


def is_loopback(host: str) -> bool:
    """Whether what is sent to this host, an IP address or a name, stays on this one."""
    return ipaddress.ip_address(host).is_loopback if is_address(host) else host.lower() == "localhost"


def is_network(text: str) -> bool:
    """Whether this is an IP address or a network in CIDR notation."""
    try:
        return bool(ipaddress.ip_network(text))
    except ValueError:
        return False


def check_networks(texts: Iterable[str], *, name: str, examples: str, names_allowed: bool = False) -> None:
    """Raise ConfigError if one of these is no network, nor a host name or `*.` and one where they are allowed."""
    for text in texts:
        if is_network(text) or (names_allowed and is_host_name(text.removeprefix("*."))):
            continue
        try:
            network = ipaddress.ip_network(text, strict=False)
        except ValueError:
            kinds = "a network nor a host name" if names_allowed else "an address nor a network"
            raise ConfigError(f"{name}: {text!r} is neither {kinds}; write for example {examples}") from None
        raise ConfigError(f"{name}: {text!r} has host bits set; did you mean {network}?")


def is_host_name(text: str) -> bool:
    """Whether this is a host name or an IPv4 address."""
    return _HOST_NAME.fullmatch(text) is not None


def check_mailbox(text: str, *, name: str, example: str) -> None:
    """Raise ConfigError if this is neither empty nor an email address of the plain kind."""
    local, _, domain = text.rpartition("@")
    if text and not (_LOCAL_PART.fullmatch(local) and is_host_name(domain)):
        raise ConfigError(f"{name}: {text!r} is not a plain email address; write for example {example}")


def is_base_url(text: str) -> bool:
    """Whether this is an HTTP URL to which a path can be appended."""
    try:
        parts = parse.urlsplit(text)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and not text.endswith("/") and not parts.query
    except ValueError:
        return False


def _is_ipv6(text: str) -> bool:
    try:
        return bool(ipaddress.IPv6Address(text))
    except ValueError:
        return False
