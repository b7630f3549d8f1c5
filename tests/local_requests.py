"""A request to an application of ours without a socket, and its answer."""

from collections.abc import Sequence

from postroad.network.http import http_messages
from postroad.web import local_api


class Request(local_api.LocalRequest):
    """Keeps the header fields of its answer too."""

    def __init__(
        self,
        method: str = "GET",
        target: bytes = b"/",
        headers: http_messages.Headers | None = None,
        body: bytes = b"",
        *,
        client_address: str = "127.0.0.1",
    ) -> None:
        super().__init__(method, target, headers or [], body, client_address=client_address)
        self.fields: list[http_messages.Field] = []

    def respond(
        self, status: int, fields: Sequence[http_messages.Field], content: bytes, *, has_more: bool = False
    ) -> None:
        self.fields = list(fields)
        super().respond(status, fields, content, has_more=has_more)
