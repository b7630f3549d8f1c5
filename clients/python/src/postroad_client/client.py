"""The client for programs that wait: one call, one thread."""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from postroad_client import answers, calls, configuration, connections, emails, resources

T = TypeVar("T")
Self = TypeVar("Self", bound="Client")


class Client(resources.Account["Any", "Iterator[Any]"]):
    """Sends mail and reads what became of it; for any number of threads.

    It takes a `token` (an API key or a JWT), or the `username` and `password` of an SMTP credential. `timeout` is for
    one attempt, `max_elapsed` for a whole call with its retries, both in seconds; 0 for the latter is one attempt. An
    `ssl_context` takes the place of the system's authorities.
    """

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
        self._settings = configuration.Settings.check(
            base_url,
            token=token,
            username=username,
            password=password,
            timeout=timeout,
            max_elapsed=max_elapsed,
        )
        self._pool = connections.Pool(self._settings.place, ssl_context)
        self._sleep: Callable[[float], None] = time.sleep

    def send(self, email: emails.Email, *, idempotency_key: str | None = None) -> answers.Receipt:
        """Send an email. Two sends with the same key send one; without a key, each call has its own."""
        return self._run(calls.send(self._settings, email, idempotency_key))

    def get(self, message_id: str, *, include_queue: bool = False) -> answers.Message:
        """What has become of an email, by the `id` of its receipt; with the queue, also when it is tried next."""
        return self._run(calls.get(self._settings, message_id, include_queue=include_queue))

    def wait(self, message_id: str, timeout: float = 300.0) -> answers.Message:
        """The message, once all of its recipients are final. A TimedOutError when they are not in time."""
        return self._run(calls.wait(self._settings, message_id, timeout))

    def close(self) -> None:
        """Close the connections that are kept for the next call."""
        self._pool.close()

    def __enter__(self: Self) -> Self:  # noqa: PYI019 - typing has none in Python 3.9
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Client({self._settings.place.url!r})"

    def _operation(self, method: str, path: str, *names: str, **options: Any) -> Any:  # noqa: ANN401 - JSON
        return self._run(calls.operation(self._settings, method, path, *names, **options))

    def _items(self, path: str, *names: str, items: str, query: Mapping[str, Any]) -> Iterator[Any]:
        following: dict[str, Any] | None = {}
        while following is not None:
            page = self._operation("GET", path, *names, query={**query, **following})
            yield from page.get(items) or ()
            following = resources.next_page(page)

    def _run(self, call: calls.Call[T]) -> T:
        try:
            step = next(call)
            while True:
                if isinstance(step, calls.Pause):
                    self._sleep(step.seconds)
                    step = next(call)
                else:
                    step = call.send(self._pool.exchange(step))
        except StopIteration as end:
            result: T = end.value
            return result
