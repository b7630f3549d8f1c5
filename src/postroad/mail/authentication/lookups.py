"""The DNS lookups for one mail: few, each asked once, and all of them within one deadline.

Whoever sends a mail decides what is asked for. So the sum counts, not only the limits of each standard. Addresses that
are found are compared and never connected to.
"""

import asyncio
from collections.abc import Callable, Coroutine
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
    """Asks a resolver for the sake of one mail, until the deadline. Its time begins here."""

    def __init__(self, dns: resolver.Resolver) -> None:
        self._dns = dns
        self._deadline = asyncio.get_running_loop().time() + LOOKUP_SECONDS
        # Their types are those of the methods that ask.
        self._answers: dict[tuple[str, str], resolver.Answer[Any] | resolver.Failure] = {}

    async def txt(self, name: str) -> resolver.Answer[str]:
        return await self._answer("txt", name, self._dns.txt)

    async def mx(self, name: str) -> resolver.Answer[resolver.Mx]:
        return await self._answer("mx", name, self._dns.mx)

    async def ipv4(self, name: str) -> resolver.Answer[str]:
        return await self._answer("ipv4", name, self._dns.ipv4)

    async def ipv6(self, name: str) -> resolver.Answer[str]:
        return await self._answer("ipv6", name, self._dns.ipv6)

    async def names(self, address: str) -> resolver.Answer[str]:
        return await self._answer("names", address, self._dns.names)

    async def _answer(
        self,
        kind: str,
        name: str,
        ask: Callable[[str], Coroutine[None, None, resolver.Answer[Record] | resolver.Failure]],
    ) -> resolver.Answer[Record]:
        name = name.lower()
        if (kind, name) not in self._answers:
            if len(self._answers) >= MAX_LOOKUPS:
                raise LookupFailed(f"the mail needs more than {MAX_LOOKUPS} DNS lookups")
            self._answers[kind, name] = await self._ask(name, ask)
        found = self._answers[kind, name]
        if isinstance(found, resolver.Failure):
            raise LookupFailed(f"{name}: {found.detail}")
        return found

    async def _ask(
        self, name: str, ask: Callable[[str], Coroutine[None, None, resolver.Answer[Record] | resolver.Failure]]
    ) -> resolver.Answer[Record] | resolver.Failure:
        try:
            async with asyncio.timeout_at(self._deadline):
                return await ask(name)
        except TimeoutError:
            return resolver.Failure("no answer in time")
