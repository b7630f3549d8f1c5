"""What a page must never do, noticed while a test is busy with something else.

Noticed are errors on the console (a broken content security policy speaks there), uncaught exceptions, requests to
anywhere but the service, and answers of 500 and above. A test that provokes one says so before: `watch.expect(...)`.
"""

import re
from typing import Final

from playwright import async_api

# Made by the page itself, and fetched from nobody.
OWN_SCHEMES: Final = ("data:", "blob:", "about:")
SERVER_ERROR: Final = 500


class PageMonitor:
    """All that a browser context of one test has done wrong; `origin` is the only place that it may ask."""

    def __init__(self, origin: str) -> None:
        self._origin = origin
        self._seen: list[str] = []
        self._expected: list[re.Pattern[str]] = []

    def over(self, context: async_api.BrowserContext) -> None:
        """Look at everything that the pages of this context do."""
        context.on("console", self._console)
        context.on("weberror", self._exception)
        context.on("request", self._request)
        context.on("response", self._response)

    def leave(self, context: async_api.BrowserContext) -> None:
        """Look away: whatever comes now belongs to another test."""
        context.remove_listener("console", self._console)
        context.remove_listener("weberror", self._exception)
        context.remove_listener("request", self._request)
        context.remove_listener("response", self._response)

    def expect(self, pattern: str) -> None:
        """Say that something whose sentence matches may happen; that it does is for the test to check."""
        self._expected.append(re.compile(pattern))

    def seen(self, pattern: str) -> list[str]:
        """What has happened whose sentence matches."""
        return [sentence for sentence in self._seen if re.search(pattern, sentence)]

    def problems(self) -> list[str]:
        """What has happened and was not expected."""
        return [sentence for sentence in self._seen if not any(one.search(sentence) for one in self._expected)]

    def _console(self, message: async_api.ConsoleMessage) -> None:
        if message.type == "error":
            where = message.location
            self._seen.append(f"console: {message.text} ({where['url']}:{where['lineNumber']})")

    def _exception(self, error: async_api.WebError) -> None:
        self._seen.append(f"exception: {error.error}")

    def _request(self, request: async_api.Request) -> None:
        ours = request.url.startswith((f"{self._origin}/", *OWN_SCHEMES))
        if not ours:
            self._seen.append(f"foreign request: {request.method} {request.url}")

    def _response(self, response: async_api.Response) -> None:
        if response.status >= SERVER_ERROR:
            self._seen.append(f"answer: {response.status} {response.url}")
