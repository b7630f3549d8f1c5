"""`[[sources]]`: the addresses that mail is sent from, each with its EHLO name, in pools.

Rules of `[[routes]]` assign mail to pools. All hosts may have the same entries: a host uses those whose address it has.
"""

import re
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from postroad.config import addresses
from postroad.config.sources import ConfigError
from postroad.model import route_rules

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
    pool: str = route_rules.DEFAULT_POOL

    @property
    def is_ipv6(self) -> bool:
        """Whether it reaches IPv6 addresses, and no others."""
        return ":" in self.address


def entry_defaults() -> dict[str, Any]:
    """The defaults of an entry's fields; empty text for those that have none."""
    return {field.name: "" if field.required else field.default for field in msgspec.structs.fields(Source)}


def check(sources: Sequence[Source], routes: Sequence[route_rules.Rule]) -> None:
    """Raise ConfigError if an entry is invalid or contradicts another, or a rule."""
    if len(sources) > MAX_SOURCES:
        raise ConfigError(f"sources: {len(sources)} entries; at most {MAX_SOURCES} are allowed")
    names, taken = [one.name for one in sources], [one.address for one in sources]
    for source in sources:
        _check_source(source)
        if names.count(source.name) > 1:
            raise ConfigError(f"sources.{source.name}: there are two with this name; rename one")
        if taken.count(source.address) > 1:
            raise ConfigError(f"sources.{source.name}.address: {source.address} is the address of another one as well")
    pools = {one.pool for one in sources}
    for number, rule in enumerate(routes):
        if rule.pool and rule.pool not in pools:
            known = ", ".join(sorted(pools)) or "none"
            raise ConfigError(f"routes[{number}]: there is no pool {rule.pool!r}; known: {known}")
    is_needed = not any(rule.matches_everything and rule.pool for rule in routes)
    if sources and is_needed and route_rules.DEFAULT_POOL not in pools:
        raise ConfigError(
            f"sources: none is in the pool {route_rules.DEFAULT_POOL!r}, which mail that no rule of [[routes]] assigns "
            "is sent from; add one, or a rule without conditions at the end of [[routes]]"
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
