"""Turns: how much work of one costly kind a process has under way, for one account and for all of them.

What is one too many is refused at once, with a time to come back, so that nobody's work queues up behind another's.
The places that are taken stand in `Context.in_flight`, beside the keys of sends, whose scopes are ids.
"""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

from postroad import errors
from postroad.services import context


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of work, as refusals call it, and how much of it there may be; a number of seconds to come back after."""

    name: str
    of_account: int
    of_process: int
    retry_seconds: int


@contextlib.contextmanager
def taken(ctx: context.Context, kind: Kind, account_id: str) -> Iterator[None]:
    """A place for the time of the block. Raises RateLimited when there is none."""
    places = [(kind.name, f"{account_id} {number}") for number in range(kind.of_account)]
    place = next((one for one in places if one not in ctx.in_flight), None)
    if place is None:
        raise errors.RateLimited(
            f"{kind.name}: at most {kind.of_account} at once for an account; wait until one has ended",
            retry_after=kind.retry_seconds,
        )
    if sum(scope == kind.name for scope, _ in ctx.in_flight) >= kind.of_process:
        raise errors.RateLimited(f"{kind.name}: too many are under way; try again soon", retry_after=kind.retry_seconds)
    ctx.in_flight.add(place)
    try:
        yield
    finally:
        ctx.in_flight.discard(place)
