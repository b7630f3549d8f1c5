"""Settings that are lists of tables: `[[sources]]`, `[[upstreams]]` and `[[routes]]`."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec

from postroad.config import addresses, sources
from postroad.config.sources import ConfigError
from postroad.model.delivery import providers
from postroad.protocol.smtp import authentication

# `[[sources]]`: the addresses that mail is sent from, each with its EHLO name, in pools.
#
# Rules of `[[routes]]` assign mail to pools. All hosts may have the same entries: a host uses those whose address it
# has.

# Usable in the name of an environment variable, which has two underscores elsewhere.
_NAME: Final = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_MAX_NAME_CHARACTERS: Final = 40
# Each is a value of labels of metrics, and has connections of its own to every provider.
MAX_SOURCES: Final = 200


class Source(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """An address to send from. Without a `hello_name`, it says the name of `delivery.hostname`."""

    name: str
    address: str
    hello_name: str = ""
    pool: str = providers.DEFAULT_POOL

    @property
    def is_ipv6(self) -> bool:
        """Whether it reaches IPv6 addresses, and no others."""
        return ":" in self.address


def source_defaults() -> dict[str, Any]:
    """The defaults of an entry's fields; empty text for those that have none."""
    return {field.name: "" if field.required else field.default for field in msgspec.structs.fields(Source)}


def check_sources(sources: Sequence[Source], routes: Sequence[providers.RouteRule]) -> None:
    """Raise ConfigError if an entry is invalid or contradicts another, or a rule."""
    if len(sources) > MAX_SOURCES:
        raise ConfigError(f"sources: {len(sources)} entries; at most {MAX_SOURCES} are allowed")
    names, taken = [source.name for source in sources], [source.address for source in sources]
    for source in sources:
        _check_source(source)
        if names.count(source.name) > 1:
            raise ConfigError(f"sources.{source.name}: there are two with this name; rename one")
        if taken.count(source.address) > 1:
            raise ConfigError(f"sources.{source.name}.address: {source.address} is the address of another one as well")
    pools = {source.pool for source in sources}
    for number, rule in enumerate(routes):
        if rule.pool and rule.pool not in pools:
            known = ", ".join(sorted(pools)) or "none"
            raise ConfigError(f"routes[{number}]: there is no pool {rule.pool!r}; known: {known}")
    is_needed = not any(rule.matches_everything and rule.pool for rule in routes)
    if sources and is_needed and providers.DEFAULT_POOL not in pools:
        raise ConfigError(
            f"sources: the pool {providers.DEFAULT_POOL!r} is empty, but mail that matches no rule of [[routes]] uses "
            "it; add a source to it, or a rule without conditions at the end of [[routes]]"
        )


def _check_source(source: Source) -> None:
    for key, name in (("name", source.name), ("pool", source.pool)):
        if not _NAME.fullmatch(name) or len(name) > _MAX_NAME_CHARACTERS:
            raise ConfigError(
                f"sources: {name!r} is not a {key}; use lower-case letters, digits and single underscores, "
                "for example out_1"
            )
    if not addresses.is_address(source.address) or "%" in source.address:
        raise ConfigError(f"sources.{source.name}.address: {source.address!r} is not an IP address")
    if source.hello_name and not addresses.is_host_name(source.hello_name):
        raise ConfigError(f"sources.{source.name}.hello_name: {source.hello_name!r} is not a host name")


# RFC 4616 section 2: what an AUTH response may hold, and more than any provider issues.
_SECRET: Final = re.compile(r"[^\x00-\x1f\x7f]{1,1000}")
_Limit = Annotated[int, msgspec.Meta(ge=1, le=1_000_000_000)]


class Upstream(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A server that relays mail, and the limits of its provider queue."""

    name: str
    host: str
    port: Annotated[int, msgspec.Meta(ge=1, le=addresses.MAX_PORT)] = 587
    tls: Literal["starttls", "tls", "off"] = "starttls"
    ca_file: str = ""
    username: str = ""
    password: str = ""
    password_file: str = ""
    connections: _Limit = 20
    messages_per_second: _Limit = 10_000
    messages_per_connection: _Limit = 10_000

    @property
    def provider_queue(self) -> str:
        """The name of its provider queue."""
        return providers.upstream_queue(self.name)

    def __repr__(self) -> str:
        return f"Upstream({self.name})"  # without the password


def upstream_defaults() -> dict[str, Any]:
    """The defaults of an entry's fields; empty text for those that have none."""
    return {field.name: "" if field.required else field.default for field in msgspec.structs.fields(Upstream)}


def check_routes(upstreams: Sequence[Upstream], routes: Sequence[providers.RouteRule]) -> None:
    """Raise ConfigError if an entry is invalid or contradicts another."""
    names = [upstream.name for upstream in upstreams]
    for upstream in upstreams:
        _check_upstream(upstream)
        if names.count(upstream.name) > 1:
            raise ConfigError(f"upstreams.{upstream.name}: there are two with this name; rename one")
    for number, rule in enumerate(routes):
        _check_route(rule, names, place=f"routes[{number}]")
        if rule.matches_everything and number + 1 < len(routes):
            raise ConfigError(
                f"routes[{number}]: has no condition and matches everything, so that the rules after it are "
                "never used; move it to the end"
            )


def upstream_credentials(upstream: Upstream) -> authentication.Credentials | None:
    """What to log in with, if anything. Raises ConfigError if the password cannot be read."""
    if not upstream.username:
        return None
    password, place = upstream.password, f"upstreams.{upstream.name}.password"
    if upstream.password_file:
        place = f"upstreams.{upstream.name}.password_file"
        password = sources.read_file(upstream.password_file, name=place).rstrip("\r\n")
    if not _SECRET.fullmatch(password):
        raise ConfigError(f"{place}: the password must be on one line")
    return authentication.Credentials(upstream.username, password)


def check_upstream_files(upstreams: Sequence[Upstream]) -> None:
    """Raise ConfigError if a file that an upstream needs cannot be read."""
    for upstream in upstreams:
        upstream_credentials(upstream)
        if not upstream.ca_file:
            continue
        from cryptography import x509  # noqa: PLC0415 - few installations have such a file; every command runs this

        place = f"upstreams.{upstream.name}.ca_file: {upstream.ca_file}"
        try:
            x509.load_pem_x509_certificates(Path(upstream.ca_file).read_bytes())
        except OSError as problem:
            raise ConfigError(f"{place} cannot be read: {problem.strerror}") from None
        except ValueError:
            raise ConfigError(f"{place} has no certificates in PEM format") from None


def _check_upstream(upstream: Upstream) -> None:
    name = upstream.name
    if not _NAME.fullmatch(name) or len(name) > _MAX_NAME_CHARACTERS:
        raise ConfigError(
            f"upstreams: {name!r} is not a name; use lower-case letters, digits and single underscores, "
            "for example amazon_ses"
        )
    if name == providers.DIRECT:
        raise ConfigError(f"upstreams.{name}: is reserved for direct delivery; choose another name")
    if name == providers.DEV_SIMULATOR:
        raise ConfigError(f"upstreams.{name}: is reserved for the simulator of 'postroad dev'; choose another name")
    if not (addresses.is_address(upstream.host) or addresses.is_host_name(upstream.host)):
        raise ConfigError(f"upstreams.{name}.host: {upstream.host!r} is neither a host name nor an IP address")
    _check_login(upstream)
    if upstream.ca_file and upstream.tls == "off":
        raise ConfigError(f'upstreams.{name}.ca_file: has no effect with tls = "off"; remove one of them')


def _check_login(upstream: Upstream) -> None:
    name = upstream.name
    passwords = {field: getattr(upstream, field) for field in ("password", "password_file")}
    sources.check_single_source(f"upstreams.{name}", passwords)
    has_password = any(passwords.values())
    if has_password and not upstream.username:
        raise ConfigError(f"upstreams.{name}.username: empty, but there is a password; set both or neither")
    if upstream.username and not has_password:
        raise ConfigError(f"upstreams.{name}.password: empty, but there is a username; set it or password_file")
    for key, text in (("username", upstream.username), ("password", upstream.password)):
        if text and not _SECRET.fullmatch(text):
            raise ConfigError(f"upstreams.{name}.{key}: has control characters or more than 1000 characters")
    if upstream.username and upstream.tls == "off" and not addresses.is_loopback(upstream.host):
        raise ConfigError(
            f'upstreams.{name}.tls: "off" would send the password unencrypted to {upstream.host}; write "starttls" '
            'or "tls"'
        )


def _check_route(rule: providers.RouteRule, names: Sequence[str], *, place: str) -> None:
    if not (rule.upstreams or rule.pool):
        raise ConfigError(f"{place}: upstreams is empty; name at least one, or {providers.DIRECT!r}, or a pool")
    known = {*names, providers.DIRECT}
    for name in rule.upstreams:
        if name not in known:
            raise ConfigError(f"{place}: there is no upstream {name!r}; known: {', '.join(sorted(known))}")
    if len(set(rule.upstreams)) < len(rule.upstreams):
        raise ConfigError(f"{place}: lists an upstream twice")
    for provider in rule.providers:
        if provider not in providers.PROVIDERS:
            known_providers = ", ".join(providers.PROVIDERS)
            raise ConfigError(f"{place}: there is no provider {provider!r}; known: {known_providers}")
    for domain in rule.sender_domains:
        if not addresses.is_host_name(domain) or domain != domain.lower():
            raise ConfigError(f"{place}: {domain!r} is not a domain in lower case, as in example.com")
