"""A browser for benchmarks: somebody who logs in to the dashboard and opens pages."""

import dataclasses
import http.client
import typing
import urllib.parse


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the browser got: which request it was, how it ended, and the page."""

    request_id: str
    status: int
    page: bytes


class Browser:
    """Somebody who is logged in, over one persistent connection."""

    def __init__(self, port: int, *, password: str, email: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        self.headers = {"Origin": f"http://127.0.0.1:{port}"}
        form = urllib.parse.urlencode({"email": email, "password": password})
        headers = {**self.headers, "Content-Type": "application/x-www-form-urlencoded"}
        self._connection.request("POST", "/login", body=form, headers=headers)
        answer = self._connection.getresponse()
        answer.read()
        cookies = [value.split(";")[0] for value in answer.headers.get_all("Set-Cookie") or ()]
        if answer.status != http.HTTPStatus.SEE_OTHER or not cookies:
            raise RuntimeError(f"the log-in was answered with {answer.status}")
        self.headers["Cookie"] = "; ".join(cookies)

    def get(self, path: str) -> Answer:
        """Open a page."""
        self._connection.request("GET", path, headers=self.headers)
        answer = self._connection.getresponse()
        return Answer(request_id=answer.headers["X-Request-ID"], status=answer.status, page=answer.read())

    def parts(self, path: str) -> typing.Iterator[bytes]:
        """Download a file, part by part."""
        self._connection.request("GET", path, headers=self.headers)
        answer = self._connection.getresponse()
        if answer.status != http.HTTPStatus.OK:
            raise RuntimeError(f"{path} was answered with {answer.status}")
        while part := answer.read1():
            yield part

    def close(self) -> None:
        """Hang up."""
        self._connection.close()
