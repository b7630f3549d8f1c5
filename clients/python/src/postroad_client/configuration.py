"""What a client is made of, checked: where to send, as whom, and how patiently."""

from __future__ import annotations

import base64
import threading
import urllib.parse
from dataclasses import field
from typing import TYPE_CHECKING, Final

from postroad_client.records import record

if TYPE_CHECKING:
    from typing_extensions import Self

DEFAULT_PORTS: Final = {"http": 80, "https": 443}


@record
class Place:
    """A base URL, taken apart. Its path has no slash at the end."""

    scheme: str
    host: str
    port: int
    path: str

    @classmethod
    def parse(cls, base_url: str) -> Self:
        """Read and check a base URL."""
        # urlsplit takes line breaks out silently; whoever has them in a URL should know.
        if not all("!" <= character <= "~" for character in base_url):
            raise ValueError("base_url must be of visible ASCII characters")
        parts = urllib.parse.urlsplit(base_url)
        if parts.scheme not in DEFAULT_PORTS or not parts.hostname:
            raise ValueError("base_url must be http or https, with a host")
        if "@" in parts.netloc or set("?#") & set(base_url):
            raise ValueError("base_url must have no user, no query and no fragment")
        try:
            parts.hostname.encode("idna")  # as whoever looks it up will do
        except UnicodeError:
            raise ValueError("base_url must have a host of labels of 1 to 63 characters") from None
        port = DEFAULT_PORTS[parts.scheme] if parts.port is None else parts.port
        return cls(scheme=parts.scheme, host=parts.hostname, port=port, path=parts.path.rstrip("/"))

    @property
    def authority(self) -> str:
        """Host and port, as in the header `Host`."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        """All of it."""
        return f"{self.scheme}://{self.authority}{self.path}"


@record
class Settings:
    """Everything that a client needs to know about its calls."""

    place: Place
    authorization: str = field(repr=False)
    timeout: float
    max_elapsed: float

    @classmethod
    def check(
        cls,
        base_url: str,
        *,
        username: str | None,
        password: str | None,
        token: str | None,
        timeout: float,
        max_elapsed: float,
    ) -> Self:
        """The settings of these arguments. Raises ValueError, with no credential in its text."""
        if timeout == 0:
            raise ValueError("timeout must be more than 0 seconds")
        check_seconds("timeout", timeout)
        check_seconds("max_elapsed", max_elapsed)
        return cls(
            place=Place.parse(base_url),
            authorization=_authorization(username, password, token),
            timeout=timeout,
            max_elapsed=max_elapsed,
        )


def _authorization(username: str | None, password: str | None, token: str | None) -> str:
    if token is not None and username is None and password is None:
        check_header("token", token)
        return f"Bearer {token}"
    if token is None and username is not None and password is not None:
        if not username or not password or ":" in username:
            raise ValueError("username and password must not be empty, and username must have no colon")
        return f"Basic {base64.b64encode(f'{username}:{password}'.encode()).decode()}"
    raise ValueError("give either a token, or a username and a password")


def check_header(name: str, value: str) -> None:
    """Refuse a value that could not stand in a header, or would add another one."""
    if not value or not value.isascii() or not value.isprintable():
        raise ValueError(f"{name} must be printable ASCII, and not empty")


def check_seconds(name: str, value: float) -> None:
    """Refuse what is no time to wait."""
    if not 0 <= value < threading.TIMEOUT_MAX:
        raise ValueError(f"{name} must be a number of seconds, not negative, and less than the system can count")
