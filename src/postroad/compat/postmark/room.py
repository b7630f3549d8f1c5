"""The room of Postmark: its routes, and the API key in `X-Postmark-Server-Token`."""

from typing import Final

from postroad.compat import room
from postroad.compat.postmark import error_shape
from postroad.web import routing


def credential(headers: routing.Headers) -> str:
    """The API key as the value of `Authorization` that it stands for."""
    token = headers.get(b"x-postmark-server-token")
    if not token:
        raise room.MissingKey("X-Postmark-Server-Token: missing; send an API key of Postroad")
    return f"Bearer {token.decode('latin-1')}"


ROOM: Final = room.Room(
    service="Postmark", prefix="/compat/postmark", routes=(), credential=credential, error_body=error_shape.shape
)
