"""The real service: one `postroad dev` for all languages, the webhooks of its demo account, and its API."""

import asyncio
import contextlib
import http.client
import json
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib import parse

from clients.conformance import wire

# A start takes a second; this is for a machine that is busy with other tests.
TIMEOUT_SECONDS: Final = 600.0
POLL_SECONDS: Final = 0.05
NO_CONTENT: Final = b"HTTP/1.1 204 No Content\r\n\r\n"
# The ledger has a few hundred entries at the end of a run; a part has 100.
MAX_PARTS: Final = 50


class ServiceFailed(Exception):
    """The service does not do what the suite needs of it."""


@dataclass(slots=True)
class Service:
    """A running service, and the credentials of its demo account."""

    base_url: str
    api_key: str
    username: str
    password: str
    token: str
    secret: str
    events: list[wire.Request] = field(default_factory=list)

    async def ask(self, method: str, path: str, document: dict[str, Any] | None = None) -> dict[str, Any]:
        """A request as the account's owner; the body of an answer that has to be good."""
        body = await _exchange(self.base_url, method, path, document=document, token=self.token)
        answer: dict[str, Any] = json.loads(body)
        return answer

    async def raw(self, path: str) -> bytes:
        """The bytes of an answer."""
        return await _exchange(self.base_url, "GET", path, token=self.token)

    async def messages_to(self, address: str) -> list[dict[str, Any]]:
        """The account's messages to an address."""
        return list((await self.ask("GET", f"/v1/messages?to={parse.quote(address)}"))["messages"])

    async def inbox(self, address: str) -> list[bytes]:
        """The mails that reached an address, as they came."""
        listed = (await self.ask("GET", f"/v1/inbox?to={parse.quote(address)}"))["messages"]
        return [await self.raw(f"/v1/inbox/{each['id']}/raw") for each in listed]

    async def charged(self, message_id: str) -> int:
        """What the ledger took for a message."""
        cost: int = 0
        before = ""
        for _ in range(MAX_PARTS):
            part = await self.ask("GET", f"/v1/account/ledger?limit=100{before}")
            cost -= sum(entry["available"] for entry in part["entries"] if entry["message_id"] == message_id)
            if part["next_before"] is None:
                return cost
            before = f"&before={parse.quote(part['next_before'])}"
        raise ServiceFailed("the ledger has no end")

    async def event(self, address: str) -> wire.Request:
        """The webhook about an address, as soon as it has come."""
        give_up_at = time.monotonic() + TIMEOUT_SECONDS
        while time.monotonic() < give_up_at:
            for request in self.events:
                if json.loads(request.body)["data"].get("to") == address:
                    return request
            await asyncio.sleep(POLL_SECONDS)
        raise ServiceFailed(f"no webhook about {address} came within {TIMEOUT_SECONDS:g} seconds")


@contextlib.asynccontextmanager
async def running() -> AsyncIterator[Service]:
    """A service on free ports, in a folder that goes with it; its webhooks come to us."""
    with tempfile.TemporaryDirectory(prefix="postroad-conformance-dev-") as name:
        async with _process(Path(name)) as info:
            login = await _exchange(info["base_url"], "POST", "/v1/auth/login", document=info["login"])
            service = Service(
                base_url=info["base_url"],
                api_key=info["api_key"],
                username=info["smtp"]["username"],
                password=info["smtp"]["password"],
                token=json.loads(login)["token"],
                secret="",
            )
            endpoint = wire.Listener(lambda reader, writer: _receive(service, reader, writer))
            port = await endpoint.open()
            try:
                service.secret = (await service.ask("PUT", "/v1/webhook", {"url": f"http://127.0.0.1:{port}/hook"}))[
                    "secret"
                ]
                yield service
            finally:
                await endpoint.close()


async def _receive(service: Service, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while (request := await wire.read_request(reader, writer)) is not None:
        service.events.append(request)
        writer.write(NO_CONTENT)
        await writer.drain()


@contextlib.asynccontextmanager
async def _process(folder: Path) -> AsyncIterator[dict[str, Any]]:
    """Run `postroad dev` in a process; yields its `dev.json`."""
    data, log = folder / "data", folder / "stderr"
    handover = data / "dev.json"
    words = ("dev", "--http", "127.0.0.1:0", "--smtp", "127.0.0.1:0", "--data", str(data))
    with log.open("wb") as errors:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "postroad", *words),
            env={name: value for name, value in os.environ.items() if not name.startswith("POSTROAD_")},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=errors,
        )
    try:
        give_up_at = time.monotonic() + TIMEOUT_SECONDS
        while not handover.exists():
            if process.returncode is not None or time.monotonic() > give_up_at:
                raise ServiceFailed(f"'postroad dev' did not start: {log.read_text(errors='replace')[-3000:]}")
            await asyncio.sleep(POLL_SECONDS)
        yield json.loads(handover.read_text())
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()


async def _exchange(
    base_url: str, method: str, path: str, *, document: dict[str, Any] | None = None, token: str | None = None
) -> bytes:
    def exchange() -> bytes:
        connection = http.client.HTTPConnection(parse.urlsplit(base_url).netloc, timeout=TIMEOUT_SECONDS)
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        if document is not None:
            headers["Content-Type"] = "application/json"
        try:
            connection.request(method, path, body=None if document is None else json.dumps(document), headers=headers)
            answer = connection.getresponse()
            body = answer.read()
        finally:
            connection.close()
        if answer.status >= http.HTTPStatus.BAD_REQUEST:
            raise ServiceFailed(f"{method} {path} was answered with {answer.status}: {body[:500]!r}")
        return body

    return await asyncio.to_thread(exchange)
