"""What all pages share: templates, static files, base URL and security headers. Built once at startup."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final
from urllib import parse

from postroad import config
from postroad.dashboard import files as dashboard_files
from postroad.dashboard import rendering
from postroad.services import operator_state as services_operator_state
from postroad.services.messages import dev_inbox

# Scripts, styles, images, fonts and requests of this origin only; no other site may frame a page (CSP level 3).
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; "
    "frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HTML: Final = "text/html; charset=utf-8"
_YEAR_SECONDS: Final = 31_536_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """The dashboard of a process. `mail` is the simulator's inbox, in `postroad dev` only.

    Without `has_credits`, no page mentions them.

    `base_url` is the public address from the settings, or empty: then browsers use that of the listener, whose scheme
    is `scheme`.
    """

    pages: rendering.Pages
    files: dashboard_files.Files
    base_url: str
    scheme: str
    mail: dev_inbox.Inbox | None
    has_credits: bool
    is_stopping: Callable[[], bool]
    operator_state: services_operator_state.OperatorState

    @property
    def is_secure(self) -> bool:
        """Whether the public address uses TLS."""
        return (self.base_url or f"{self.scheme}:").startswith("https:")

    @property
    def headers(self) -> tuple[tuple[str, str], ...]:
        """The security headers of every page."""
        guards = ("Content-Security-Policy", POLICY), ("Cross-Origin-Opener-Policy", "same-origin")
        if not self.is_secure:
            return guards
        return *guards, ("Strict-Transport-Security", f"max-age={_YEAR_SECONDS}")


def build(
    settings: config.Settings,
    *,
    mail: dev_inbox.Inbox | None,
    is_stopping: Callable[[], bool],
    operator_state: services_operator_state.OperatorState,
) -> Site:
    """Build the dashboard from the settings."""
    loaded = dashboard_files.load()
    return Site(
        pages=rendering.Pages(loaded.addresses.__getitem__, command=mail.command if mail else "postroad {}".format),
        files=loaded,
        base_url=config.public_url(settings),
        scheme="https" if config.serves_https(settings) else "http",
        mail=mail,
        has_credits=settings.credits.enabled,
        is_stopping=is_stopping,
        operator_state=operator_state,
    )


def origin_of(url: str) -> str:
    """The origin of a URL, as browsers write it (RFC 6454)."""
    parts = parse.urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}".lower()
