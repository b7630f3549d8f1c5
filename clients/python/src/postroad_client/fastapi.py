"""For FastAPI: the event of a webhook request as a dependency.

    event_of = WebhookEvent(os.environ["POSTROAD_WEBHOOK_SECRET"])

    @app.post("/hooks", status_code=204)
    async def hook(event: Annotated[Event, Depends(event_of)]) -> None: ...

To send, keep one `AsyncClient` for the lifespan of the application.
"""

from __future__ import annotations

from collections.abc import Sequence

import fastapi

from postroad_client import answers, errors, webhooks


class WebhookEvent:
    """Verifies and parses the body. A bad signature is answered with 400."""

    def __init__(self, secret: str | Sequence[str]) -> None:
        self._secret = secret

    async def __call__(self, request: fastapi.Request) -> answers.Event:
        """The event of a request."""
        try:
            return webhooks.parse_event(await request.body(), request.headers.get("Service-Signature"), self._secret)
        except (errors.SignatureVerificationError, ValueError):
            raise fastapi.HTTPException(400, "the webhook could not be verified") from None


# With the annotations of this module as text, FastAPI would look for the name in the module of the route.
WebhookEvent.__call__.__annotations__["request"] = fastapi.Request
