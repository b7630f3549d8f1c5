"""Limits of an API key, and what it has used of them.

Sender domains, templates, recipients a day and the credit budget bind what a key sends; networks and the end date bind
everything that it does. An empty list and None mean no limit. Days are UTC days. A day that has begun continues when a
clock is set back, so that its recipients are not granted twice.
"""

import ipaddress
from typing import Final

import msgspec

from postroad.model import times

# Hosts may see midnight at different moments; a day further ahead was written by a wrong clock.
MAX_DAYS_AHEAD: Final = 1
IpNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of a key; names and networks are in normal form."""

    domains: tuple[str, ...] = ()
    networks: tuple[str, ...] = ()
    templates: tuple[str, ...] = ()
    recipients_per_day: int | None = None
    credit_budget: int | None = None
    expires_at: int | None = None
    # Recipients of one request; with more, a person has to approve it.
    approval_above: int | None = None

    @property
    def is_counted(self) -> bool:
        """Whether what the key sends is counted."""
        return self.recipients_per_day is not None or self.credit_budget is not None


NO_LIMITS: Final = Limits()


class Usage(msgspec.Struct, frozen=True):
    """What a key has sent: recipients on the last day with mail (days since 1970), and credits in all."""

    day: int = 0
    recipients: int = 0
    credits: int = 0


class Budget(msgspec.Struct, frozen=True):
    """The limits of a key that are counted, and its use of them."""

    recipients_per_day: int | None
    credit_budget: int | None
    usage: Usage


def on_day(usage: Usage, *, now: int) -> Usage:
    """The usage at a time, before anything more is sent."""
    day = times.day_of(now)
    if usage.day - MAX_DAYS_AHEAD <= day <= usage.day:
        return usage
    return Usage(day, 0 if day > usage.day else usage.recipients, usage.credits)


def use(usage: Usage, *, recipients: int, credits: int) -> Usage:
    """The usage after this much more."""
    return Usage(usage.day, usage.recipients + recipients, usage.credits + credits)


def permits_address(limits: Limits, client_address: str) -> bool:
    """Whether the key may be used from an address; not from an unknown one, if it has networks."""
    if not limits.networks:
        return True
    try:
        client = ipaddress.ip_address(client_address.partition("%")[0])
    except ValueError:
        return False
    mapped = client.ipv4_mapped if isinstance(client, ipaddress.IPv6Address) else None
    return any((mapped or client) in ipaddress.ip_network(network) for network in limits.networks)


def exceeded(limits: Limits, own: Limits) -> str | None:
    """The first member in which limits permit more than others; None when they permit no more."""
    for member in ("domains", "templates"):
        names, bounds = getattr(limits, member), getattr(own, member)
        if bounds and not (names and set(names) <= set(bounds)):
            return member
    if own.networks and not (limits.networks and all(_is_inside(network, own.networks) for network in limits.networks)):
        return "networks"
    for member in ("recipients_per_day", "credit_budget", "expires_at", "approval_above"):
        amount, bound = getattr(limits, member), getattr(own, member)
        if bound is not None and (amount is None or amount > bound):
            return member
    return None


def _is_inside(network: str, bounds: tuple[str, ...]) -> bool:
    inner = ipaddress.ip_network(network)
    return any(_contains(ipaddress.ip_network(bound), inner) for bound in bounds)


def _contains(outer: IpNetwork, inner: IpNetwork) -> bool:
    return outer.version == inner.version and inner.network_address in outer and inner.broadcast_address in outer
