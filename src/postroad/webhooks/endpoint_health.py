"""Notes changes in the health of endpoints beside the deliveries: one note for an endpoint at a time."""

import asyncio

from postroad.services import context
from postroad.services.webhooks import failing_endpoints
from postroad.storage import store, webhooks
from postroad.telemetry import logs


class EndpointHealth:
    """Starts notes, and waits for them at the end."""

    def __init__(self, ctx: context.Context, *, log: logs.Logger) -> None:
        self._ctx = ctx
        self._log = log
        self._notes: dict[str, asyncio.Task[None]] = {}

    def observe(self, webhook: webhooks.Webhook, *, succeeded: bool, at: int) -> None:
        """Take note of a recorded attempt, if it is news and no other note of the endpoint is under way."""
        is_news = failing_endpoints.is_news(webhook, succeeded=succeeded, now=self._ctx.clock())
        if is_news and webhook.id not in self._notes:
            task = asyncio.get_running_loop().create_task(self._note(webhook, succeeded=succeeded, at=at))
            self._notes[webhook.id] = task
            task.add_done_callback(lambda _: self._notes.pop(webhook.id))

    async def close(self, *, seconds: float) -> None:
        """Wait for notes under way, at most this long."""
        if self._notes:
            _, late = await asyncio.wait(list(self._notes.values()), timeout=seconds)
            for task in late:
                task.cancel()

    async def _note(self, webhook: webhooks.Webhook, *, succeeded: bool, at: int) -> None:
        try:
            await failing_endpoints.note(self._ctx, webhook, succeeded=succeeded, at=at, log=self._log)
        except store.UNAVAILABLE as error:
            # The next attempt notes the same.
            self._log.warning("webhook_health_unavailable", error=error.message)
        except Exception:  # noqa: BLE001 - logged; deliveries go on
            self._log.exception("webhook_health_failed", webhook_id=webhook.id)
