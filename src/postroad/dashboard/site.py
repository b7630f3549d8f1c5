"""What the whole dashboard has in common: its pages and files, and where it stands. Built once, when the door opens."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final
from urllib import parse

from postroad import config
from postroad.dashboard import files, rendering
from postroad.services.messages import dev_inbox

# Only what comes from here runs, is shown, or is asked; nobody may frame our pages (CSP level 3).
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HTML: Final = "text/html; charset=utf-8"
_YEAR_SECONDS: Final = 31_536_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """The dashboard of a process. `mail` is the inbox of the simulator, in `postroad dev`.

    `base_url` is where people reach it, as the settings say; empty when they do not.
    """

    pages: rendering.Pages
    files: files.Files
    base_url: str
    mail: dev_inbox.Inbox | None
    is_stopping: Callable[[], bool]

    @property
    def is_secure(self) -> bool:
        """Whether people reach it over TLS."""
        return self.base_url.startswith("https://")

    @property
    def headers(self) -> tuple[tuple[str, str], ...]:
        """What every page carries."""
        guards = ("Content-Security-Policy", POLICY), ("Cross-Origin-Opener-Policy", "same-origin")
        if not self.is_secure:
            return guards
        return *guards, ("Strict-Transport-Security", f"max-age={_YEAR_SECONDS}")


def build(settings: config.Settings, *, mail: dev_inbox.Inbox | None, is_stopping: Callable[[], bool]) -> Site:
    """The dashboard of an installation."""
    loaded = files.load()
    return Site(
        pages=rendering.Pages(loaded.addresses.__getitem__),
        files=loaded,
        base_url=settings.http.base_url,
        mail=mail,
        is_stopping=is_stopping,
    )


def origin_of(url: str) -> str:
    """The origin of an address, as browsers write it (RFC 6454)."""
    parts = parse.urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}".lower()
