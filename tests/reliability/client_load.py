"""Clients of a service, many more than it can serve: each repeats its message at once until it is accepted.

They ignore Retry-After, so memory that the service kept for refused clients would soon show.
"""

import asyncio
import base64
import contextlib
import json
from collections.abc import AsyncIterator

from tests import raw_http
from tests.reliability import profile, service_process, submission_service, whole_service

HTTP_CLIENTS, SMTP_CLIENTS = (200, 40) if profile.IS_LONG else (50, 10)
LARGE = "Hello, it is me again.\n" * 2000
ACCEPTED, UNAVAILABLE = 202, 503


class ClientLoad:
    """Clients over HTTP and SMTP, and how often they were refused."""

    def __init__(self, whole: whole_service.WholeService) -> None:
        self.refused = 0
        self._whole = whole
        self._is_over = False

    @contextlib.asynccontextmanager
    async def pushing(self) -> AsyncIterator[None]:
        """For the time of the block; in the end everybody waits for the last answer."""
        async with asyncio.TaskGroup() as tasks:
            for number in range(HTTP_CLIENTS):
                tasks.create_task(self._push_by_http(f"http {number}"))
            for number in range(SMTP_CLIENTS):
                tasks.create_task(self._push_by_smtp(f"smtp {number}"))
            try:
                yield
            finally:
                self._is_over = True

    async def is_refused(self, count: int) -> None:
        """Until so many more were refused."""
        goal = self.refused + count
        await service_process.until(lambda: asyncio.sleep(0, result=self.refused >= goal))

    async def _push_by_http(self, name: str) -> None:
        taken = 0
        async with raw_http.connect(self._whole.service.address) as connection:
            while not self._is_over:
                key = f"{name} {taken}"
                await connection.send(self._request(key))
                answer = await connection.response()
                if answer.status == ACCEPTED:
                    self._whole.accepted[key] = answer.json()["id"]
                    taken += 1
                else:
                    assert answer.status == UNAVAILABLE, answer.json()
                    # The second if the answer to a commit is late, on a machine that is slow as well.
                    assert answer.json()["code"] in {"temporary_failure", "service_unavailable"}
                    assert answer.headers["retry-after"] in {"1", "5"}
                    self.refused += 1

    def _request(self, key: str) -> bytes:
        body = {"from": submission_service.SENDER, "to": [whole_service.address(key)], "subject": key, "text": LARGE}
        login = base64.b64encode(":".join(self._whole.login).encode()).decode()
        return raw_http.post(
            "/emails", json.dumps(body).encode(), f"Authorization: Basic {login}", f"Idempotency-Key: {key}"
        )

    async def _push_by_smtp(self, name: str) -> None:
        taken = 0
        while not self._is_over:
            reply = await self._whole.hand_in(f"{name} {taken}")
            if reply[0] == submission_service.ACCEPTED:
                taken += 1
            else:
                assert reply in {whole_service.UNAVAILABLE, whole_service.BUSY}
                self.refused += 1
