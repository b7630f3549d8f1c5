"""A real Firefox, found on this machine and driven over WebDriver BiDi (w3c.github.io/webdriver-bidi).

Playwright drives its own build, or a Firefox newer than the ESR that distributions have. These few commands are enough
to see that pages work in a second engine. Nothing leaves the machine: all but loopback goes to a proxy that does not
exist.
"""

import asyncio
import contextlib
import json
import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import aiohttp

NAMES: Final = ("firefox-esr", "firefox")
REMEDY: Final = "install with: apt-get install firefox-esr"
# Firefox writes the port here as soon as it listens.
LISTENING: Final = "WebDriverBiDiServer.json"
PREFERENCES: Final[dict[str, object]] = {
    "network.proxy.type": 1,
    "network.proxy.http": "127.0.0.1",
    "network.proxy.http_port": 9,
    "network.proxy.ssl": "127.0.0.1",
    "network.proxy.ssl_port": 9,
    "network.dns.disabled": True,
    "app.update.enabled": False,
    "browser.startup.page": 0,
    "browser.shell.checkDefaultBrowser": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "toolkit.telemetry.enabled": False,
    "services.settings.server": "http://127.0.0.1:9",
}
# A bound for a machine that is busy with other tests.
TIMEOUT_SECONDS: Final = 300
POLL_SECONDS: Final = 0.1
# Keys without a character (WebDriver, 17.4.2).
CONTROL, ENTER = "\ue009", "\ue007"


class CommandError(Exception):
    """Firefox refused a command, for example because the page is being left."""


class Tab:
    """The only tab. `problems` are errors on the console and uncaught exceptions."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse, base_url: str) -> None:
        self._socket = socket
        self._base_url = base_url
        self._context = ""
        self._sent = 0
        self.problems: list[str] = []

    async def begin(self, cookie_name: str, cookie: str) -> None:
        """Open the session, with the cookie of somebody who is logged in."""
        await self._send("session.new", capabilities={})
        await self._send("session.subscribe", events=["log.entryAdded"])
        self._context = (await self._send("browsingContext.getTree"))["contexts"][0]["context"]
        value = {"type": "string", "value": cookie}
        await self._send("storage.setCookie", cookie={"name": cookie_name, "value": value, "domain": "127.0.0.1"})

    async def goto(self, path: str) -> None:
        """Open a page and wait until it is loaded."""
        await self._send("browsingContext.navigate", context=self._context, url=self._base_url + path, wait="complete")

    async def evaluate(self, expression: str) -> Any:  # noqa: ANN401 - whatever the page says
        """The value of a JavaScript expression: a text, a number or a truth value."""
        target = {"context": self._context}
        answer = await self._send("script.evaluate", expression=expression, target=target, awaitPromise=True)
        if answer["type"] == "exception":
            raise CommandError(answer["exceptionDetails"]["text"])
        return answer["result"].get("value")

    async def until(self, expression: str) -> None:
        """Wait until the expression is true, on this page or the next."""
        async with asyncio.timeout(TIMEOUT_SECONDS):
            while True:
                with contextlib.suppress(CommandError):
                    if await self.evaluate(expression):
                        return
                await asyncio.sleep(POLL_SECONDS)

    async def press(self, *keys: str) -> None:
        """Hold the keys down in this order, and let go."""
        actions = [{"type": "keyDown", "value": key} for key in keys]
        actions += [{"type": "keyUp", "value": key} for key in reversed(keys)]
        await self._send(
            "input.performActions", context=self._context, actions=[{"type": "key", "id": "keys", "actions": actions}]
        )

    async def close(self) -> None:
        """End the browser."""
        await self._send("browser.close")

    async def _send(self, method: str, **parameters: object) -> dict[str, Any]:
        self._sent += 1
        await self._socket.send_json({"id": self._sent, "method": method, "params": parameters})
        while True:
            message = await self._socket.receive_json()
            if message["type"] == "event":
                entry = message["params"]
                if entry["level"] == "error":
                    self.problems.append(str(entry["text"]))
            elif message["id"] == self._sent:
                if message["type"] == "error":
                    raise CommandError(f"{method}: {message['message']}")
                result: dict[str, Any] = message["result"]
                return result


def find() -> str | None:
    """The program, or None."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


@contextlib.asynccontextmanager
async def running(program: str, folder: Path, base_url: str) -> AsyncIterator[Tab]:
    """A browser without a window and with a new profile, closed at the end."""
    _configure(folder)
    process = await asyncio.create_subprocess_exec(
        program,
        *("--headless", "--no-remote", "--profile", str(folder), "--remote-debugging-port", "0"),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        env={**os.environ, "HOME": str(folder)},
    )
    try:
        port = await _port(process, folder / LISTENING)
        async with (
            aiohttp.ClientSession() as session,
            session.ws_connect(f"ws://127.0.0.1:{port}/session", max_msg_size=0) as socket,
        ):
            tab = Tab(socket, base_url)
            yield tab
            await tab.close()
        await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def _port(process: asyncio.subprocess.Process, file: Path) -> int:
    async with asyncio.timeout(TIMEOUT_SECONDS):
        while process.returncode is None:
            # Half written, it is no JSON yet.
            with contextlib.suppress(FileNotFoundError, ValueError):
                return _written_port(file)
            await asyncio.sleep(POLL_SECONDS)
    raise AssertionError(f"Firefox ended with {process.returncode} before it listened")


def _configure(folder: Path) -> None:
    lines = (f"user_pref({json.dumps(name)}, {json.dumps(value)});\n" for name, value in PREFERENCES.items())
    (folder / "user.js").write_text("".join(lines))


def _written_port(file: Path) -> int:
    return int(json.loads(file.read_text())["ws_port"])
