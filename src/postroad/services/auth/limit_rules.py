"""Limits of an API key as a caller gives them, checked and in normal form."""

import ipaddress
from collections.abc import Callable
from typing import Final

from postroad import errors
from postroad.model import key_limits, times
from postroad.protocol import address
from postroad.services.acceptance import validation

# A list is read with every request of its key.
MAX_NAMES: Final = 100
# Far more than any installation sends; sums stay far below what a database counts.
MAX_AMOUNT: Final = 1_000_000_000


def checked(limits: key_limits.Limits, *, now: int) -> key_limits.Limits:
    """The limits in normal form; raises InvalidRequest with the name of the member."""
    for member in ("recipients_per_day", "credit_budget"):
        amount = getattr(limits, member)
        if amount is not None and not 1 <= amount <= MAX_AMOUNT:
            raise errors.InvalidRequest(f"{member}: must be from 1 to {MAX_AMOUNT}")
    if limits.approval_above is not None and not 0 <= limits.approval_above <= MAX_AMOUNT:
        raise errors.InvalidRequest(f"approval_above: must be from 0 to {MAX_AMOUNT}")
    if limits.expires_at is not None and limits.expires_at <= now:
        raise errors.InvalidRequest(f"expires_at: must be in the future; it is {times.to_wire(now)}")
    return key_limits.Limits(
        domains=_names("domains", limits.domains, _domain),
        networks=_names("networks", limits.networks, _network),
        templates=_names("templates", limits.templates, validation.check_alias),
        recipients_per_day=limits.recipients_per_day,
        credit_budget=limits.credit_budget,
        expires_at=limits.expires_at,
        approval_above=limits.approval_above,
    )


def _names(member: str, names: tuple[str, ...], normal: Callable[[str, str], str]) -> tuple[str, ...]:
    """Names in normal form, each once."""
    if len(names) > MAX_NAMES:
        raise errors.InvalidRequest(f"{member}: has {len(names)} entries; at most {MAX_NAMES} are allowed")
    return tuple(dict.fromkeys(normal(f"{member}[{index}]", name) for index, name in enumerate(names)))


def _domain(field: str, name: str) -> str:
    try:
        return address.parse_domain(name)
    except address.AddressError as problem:
        raise errors.InvalidRequest(f"{field}: {problem}") from None


def _network(field: str, text: str) -> str:
    try:
        network = ipaddress.ip_network(text)
    except ValueError:
        hint = _hint(text)
        raise errors.InvalidRequest(f"{field}: must be a network such as 192.0.2.0/24 or 2001:db8::/32{hint}") from None
    return str(network)


def _hint(text: str) -> str:
    """The network that an address with a prefix length is in, which is probably meant."""
    try:
        return f"; the network of this address is {ipaddress.ip_network(text, strict=False)}"
    except ValueError:
        return ""
