"""The client for asyncio. It needs aiohttp: `postroad-client[async]`."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, TypeVar

from postroad_client import answers, calls, configuration, emails, resources

T = TypeVar("T")
Self = TypeVar("Self", bound="AsyncClient")


class AsyncClient(resources.Account["Awaitable[Any]", "AsyncIterator[Any]"]):
    """`Client` for asyncio, with the same arguments; for any number of tasks of one event loop."""

    def __init__(
        self,
        base_url: str,
        *,
        token: str | None = None,
        username: str | None = None,
        password: str | None = None,
        timeout: float = 30.0,
        max_elapsed: float = 60.0,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        super().__init__(self._operation, self._items)
        from postroad_client import async_connections  # noqa: PLC0415 - so that only this class needs aiohttp

        self._settings = configuration.Settings.check(
            base_url,
            token=token,
            username=username,
            password=password,
            timeout=timeout,
            max_elapsed=max_elapsed,
        )
        self._pool = async_connections.Pool(self._settings.place, ssl_context)
        self._sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    async def send(self, email: emails.Email, *, idempotency_key: str | None = None) -> answers.Receipt:
        """Send an email. Two sends with the same key send one; without a key, each call has its own."""
        return await self._run(calls.send(self._settings, email, idempotency_key))

    async def get(self, message_id: str, *, include_queue: bool = False) -> answers.Message:
        """What has become of an email, by the `id` of its receipt; with the queue, also when it is tried next."""
        return await self._run(calls.get(self._settings, message_id, include_queue=include_queue))

    async def wait(self, message_id: str, timeout: float = 300.0) -> answers.Message:
        """The message, once all of its recipients are final. A TimedOutError when they are not in time."""
        return await self._run(calls.wait(self._settings, message_id, timeout))

    async def aclose(self) -> None:
        """Close the connections that are kept for the next call."""
        await self._pool.close()

    async def __aenter__(self: Self) -> Self:  # noqa: PYI019 - typing has none in Python 3.9
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        return f"AsyncClient({self._settings.place.url!r})"

    async def _operation(self, method: str, path: str, *names: str, **options: Any) -> Any:  # noqa: ANN401 - JSON
        return await self._run(calls.operation(self._settings, method, path, *names, **options))

    async def _items(self, path: str, *names: str, items: str, query: Mapping[str, Any]) -> AsyncIterator[Any]:
        following: dict[str, Any] | None = {}
        while following is not None:
            page = await self._operation("GET", path, *names, query={**query, **following})
            for item in page.get(items) or ():
                yield item
            following = resources.next_page(page)

    async def _run(self, call: calls.Call[T]) -> T:
        try:
            step = next(call)
            while True:
                if isinstance(step, calls.Pause):
                    await self._sleep(step.seconds)
                    step = next(call)
                else:
                    step = call.send(await self._pool.exchange(step))
        except StopIteration as end:
            result: T = end.value
            return result
