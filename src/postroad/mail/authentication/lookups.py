"""The DNS lookups for one mail: few, each asked once, and all of them within one deadline.

Whoever sends a mail decides what is asked for. So the sum counts, not only the limits of each standard. Addresses that
are found are compared and never connected to.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

from postroad.network.dns import resolver

# A usual mail needs ten: its keys, some records of SPF, and two policies for each of two domains. One that uses up all
# limits of SPF (RFC 7208 section 4.6.4) would need 111 for that alone.
MAX_LOOKUPS: Final = 80
# For all of them: a session waits for it.
LOOKUP_SECONDS: Final = 15.0

Record = TypeVar("Record")


class LookupFailed(Exception):
    """DNS has not answered; the message says why. Another time it may."""


class Lookups:
    """Asks for the sake of one mail, until the deadline, which counts from here. `turn` gives a resolver for a lookup.

    Waiting for a turn is part of the time.
    """

    def __init__(self, turn: Callable[[], contextlib.AbstractAsyncContextManager[resolver.Resolver]]) -> None:
        self._turn = turn
        self._deadline = asyncio.get_running_loop().time() + LOOKUP_SECONDS
        # Their types are those of the methods that ask.
        self._answers: dict[tuple[str, str], resolver.Answer[Any] | resolver.Failure] = {}

    async def txt(self, name: str) -> resolver.Answer[str]:
        return await self._answer(resolver.Resolver.txt, name)

    async def mx(self, name: str) -> resolver.Answer[resolver.Mx]:
        return await self._answer(resolver.Resolver.mx, name)

    async def ipv4(self, name: str) -> resolver.Answer[str]:
        return await self._answer(resolver.Resolver.ipv4, name)

    async def ipv6(self, name: str) -> resolver.Answer[str]:
        return await self._answer(resolver.Resolver.ipv6, name)

    async def names(self, address: str) -> resolver.Answer[str]:
        return await self._answer(resolver.Resolver.names, address)

    async def _answer(
        self,
        ask: Callable[[resolver.Resolver, str], Awaitable[resolver.Answer[Record] | resolver.Failure]],
        name: str,
    ) -> resolver.Answer[Record]:
        question = (ask.__name__, name.lower())
        if question not in self._answers:
            if len(self._answers) >= MAX_LOOKUPS:
                raise LookupFailed(f"the mail needs more than {MAX_LOOKUPS} DNS lookups")
            try:
                async with asyncio.timeout_at(self._deadline), self._turn() as dns:
                    self._answers[question] = await ask(dns, name)
            except TimeoutError:
                self._answers[question] = resolver.Failure("no answer in time")
        found = self._answers[question]
        if isinstance(found, resolver.Failure):
            raise LookupFailed(f"{name}: {found.detail}")
        return found
