"""What all pages share: templates and their filters, static files, base URL, security headers. Built at startup."""

import contextvars
import gzip
import re
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import resources
from importlib.resources import abc
from typing import Any, Final
from urllib import parse

import jinja2
import markupsafe

from postroad import config, context
from postroad.dashboard.framework import navigation, static_files
from postroad.model.units import times
from postroad.services.accounts import statistics
from postroad.services.messages import dev_inbox
from postroad.services.operations import operator_state as services_operator_state
from postroad.web import routing

# Renders pages: Jinja with autoescape, and the filters that pages share.
#
# No value is trusted. External text (subjects, replies, names) goes through `plain`, which makes control characters and
# bidirectional marks visible.

_HIDDEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e0fff]"
)
_ABOUT_FIELD: Final = re.compile(r"[a-z_]+(\[\d+\])?: ")
_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400
_SHORT_UNITS: Final = ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "min"), (1, "s"))
_JUST_NOW: Final = 5  # seconds: less is not worth reading
_NEVER: Final = markupsafe.Markup('<span class="muted">never</span>')
# The zone of the page that is being rendered. Macros do not see the values of a page, but show times.
_zone: Final = contextvars.ContextVar("zone", default=times.UTC)
_ACRONYMS: Final = {"api": "API", "dns": "DNS", "ip": "IP", "mx": "MX", "sso": "SSO", "tls": "TLS"}
_KIBIBYTE: Final = 1_024
_UNITS: Final = ((_DAY, "day"), (_HOUR, "hour"), (_MINUTE, "minute"), (1, "second"))


class Pages:
    """The templates of all pages, loaded once."""

    def __init__(self, address: Callable[[str], str], *, command: Callable[[str], str]) -> None:
        self._environment = jinja2.Environment(
            # Loaded at startup: replacing the files does not change a running service.
            loader=jinja2.DictLoader(dict(_sources("", resources.files("postroad.dashboard").joinpath("pages")))),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
            extensions=["jinja2.ext.do"],
        )
        self._environment.globals.update(asset=address, command=command)
        self._environment.filters.update(FILTERS)

    def render(self, name: str, values: Mapping[str, Any]) -> bytes:
        """A rendered page, with times in its `zone`."""
        token = _zone.set(values.get("zone", times.UTC))
        try:
            return self._environment.get_template(name).render(values).encode()
        finally:
            _zone.reset(token)

    @property
    def names(self) -> list[str]:
        return self._environment.list_templates()


def _sources(path: str, folder: abc.Traversable) -> Iterator[tuple[str, str]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _sources(f"{path}{entry.name}/", entry)
        else:
            yield f"{path}{entry.name}", entry.read_text()


def plain(text: object) -> str:
    return _HIDDEN.sub("\ufffd", str(text))


def when(moment: int | None) -> markupsafe.Markup:
    """A time to the second in the reader's time zone, which the title names."""
    if moment is None:
        return _NEVER
    shown, title = _in_zone(moment)
    return markupsafe.Markup('<time datetime="{}" title="{}">{}</time>').format(times.to_wire(moment), title, shown)


def ago(moment: int | None, now: int) -> markupsafe.Markup:
    """The same as a time relative to `now`, for lists; a script refreshes it."""
    if moment is None:
        return _NEVER
    _, title = _in_zone(moment)
    return markupsafe.Markup('<time datetime="{}" title="{}" data-ago>{}</time>').format(
        times.to_wire(moment), title, short_ago(moment, now)
    )


def clock(moment: int, now: int) -> markupsafe.Markup:
    """Hours and minutes, with the date unless it is today's."""
    shown, title = _in_zone(moment)
    begin = 11 if shown[:10] == _in_zone(now)[0][:10] else 0
    return markupsafe.Markup('<time datetime="{}" title="{}">{}</time>').format(
        times.to_wire(moment), title, shown[begin:16]
    )


def short_ago(moment: int, now: int) -> str:
    """Roughly how long ago, or in how long, in the abbreviations of units; app.js has the same rules."""
    seconds = abs(now - moment) // times.SECOND
    if seconds < _JUST_NOW:
        return "now"
    count, unit = next((seconds // size, unit) for size, unit in _SHORT_UNITS if seconds >= size)
    return f"{count} {unit} ago" if now >= moment else f"in {count} {unit}"


def _in_zone(moment: int) -> tuple[str, str]:
    """A time in the zone of the page, and the same with the name of the zone."""
    zone = _zone.get()
    local = times.local(moment, zone)
    shown = local.strftime("%Y-%m-%d %H:%M:%S")
    offset = "" if zone is times.UTC else f" ({times.offset_text(local)})"
    return shown, f"{shown} {zone.key}{offset}"


def relative_time(moment: int, now: int) -> str:
    seconds = (now - moment) // times.SECOND
    text = duration(abs(seconds))
    return f"{text} ago" if seconds >= 0 else f"in {text}"


def duration(seconds: float) -> str:
    for size, name in _UNITS:
        if seconds >= size:
            count = int(seconds // size)
            return f"{count} {name}" if count == 1 else f"{count} {name}s"
    return "a moment"


def number(value: int) -> str:
    return f"{value:,}"


def size(value: int) -> str:
    if value < _KIBIBYTE:
        return f"{value} B"
    for unit in ("KiB", "MiB", "GiB"):
        value_in_unit = value / _KIBIBYTE
        if value_in_unit < _KIBIBYTE:
            return f"{value_in_unit:.1f} {unit}"
        value = int(value_in_unit)
    return f"{value:,} GiB"


def percent(part: int, whole: int) -> str:
    """A percentage; "none" of a total of zero."""
    if whole == 0:
        return "none"
    return f"{100 * part / whole:.1f}%" if 0 < part < whole else f"{100 * part // whole}%"


def milliseconds(microseconds: int) -> str:
    """A short duration in milliseconds or seconds."""
    return f"{microseconds / 1_000:,.0f} ms" if microseconds < times.SECOND else f"{microseconds / times.SECOND:,.1f} s"


def elapsed(microseconds: int) -> str:
    seconds = microseconds / times.SECOND
    if seconds < _MINUTE:
        return milliseconds(microseconds)
    return f"{seconds / _MINUTE:,.0f} min" if seconds < 2 * _HOUR else f"{seconds / _HOUR:,.1f} h"


def humanize(name: str) -> str:
    return " ".join(_ACRONYMS.get(word, word) for word in name.replace("_", " ").split(" "))


def sentence(text: str) -> str:
    """A text with a capital letter and a full stop; a name of a host or setting at its start stays as it is."""
    first = text.partition(" ")[0].rstrip(".,:;!?")
    return (text if "." in first else text[:1].upper() + text[1:]) + ("" if text.endswith((".", "!", "?")) else ".")


def error_sentence(text: str) -> str:
    """An error message as a sentence, unless it begins with the name of a form field."""
    return text if _ABOUT_FIELD.match(text) else sentence(text)


FILTERS: Final[Mapping[str, Callable[..., Any]]] = {
    "plain": plain,
    "when": when,
    "ago": ago,
    "clock": clock,
    "relative_time": relative_time,
    "duration": duration,
    "number": number,
    "size": size,
    "percent": percent,
    "milliseconds": milliseconds,
    "elapsed": elapsed,
    "humanize": humanize,
    "sentence": sentence,
    "error_sentence": error_sentence,
    "message_url": navigation.message_url,
    "messages_with": navigation.messages_with_url,
    "recipient_url": navigation.recipient_url,
}


# Cached fingerprints. None is kept for longer than a second, so all may go when there are too many.
MAX_ACCOUNTS: Final = 1_000
MAX_FINGERPRINT_SECONDS: Final = 1.0


class FingerprintCache:
    """What tells open pages that their account has changed; they share one read."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[float, str]] = {}

    async def of(self, ctx: context.Context, account_id: str) -> str:
        """The fingerprint, at most a second old."""
        seen = self._seen.get(account_id)
        if seen is not None and time.monotonic() - seen[0] < MAX_FINGERPRINT_SECONDS:
            return seen[1]
        fingerprint = (await statistics.change_fingerprint(ctx, account_id)).hex()
        if len(self._seen) >= MAX_ACCOUNTS:
            self._seen.clear()
        self._seen[account_id] = time.monotonic(), fingerprint
        return fingerprint


# Scripts, styles, images, fonts and requests of this origin only; no other site may frame a page (CSP level 3).
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; "
    "frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HTML: Final = "text/html; charset=utf-8"
_YEAR_SECONDS: Final = 31_536_000
# Pages have texts of strangers, and the event loop waits. With level 9, 2 MB of the worst text take 16 seconds, with
# this one a quarter of a second; usual pages are three percent larger.
GZIP_LEVEL: Final = 5
# As in Django's defence against BREACH.
MAX_PADDING_BYTES: Final = 100
_FILE_NAME_FLAG: Final = b"\x08"


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """The dashboard of a process. `mail` is the simulator's inbox, in `postroad dev` only.

    Without `has_credits`, no page mentions them.

    `base_url` is the public address from the settings, or empty: then browsers use that of the listener, whose scheme
    is `scheme`.
    """

    pages: Pages
    files: static_files.StaticFiles
    base_url: str
    scheme: str
    mail: dev_inbox.Inbox | None
    has_credits: bool
    is_stopping: Callable[[], bool]
    operator_state: services_operator_state.OperatorState
    fingerprints: FingerprintCache = field(default_factory=FingerprintCache)

    @property
    def is_secure(self) -> bool:
        return (self.base_url or f"{self.scheme}:").startswith("https:")

    @property
    def headers(self) -> tuple[tuple[str, str], ...]:
        guards = ("Content-Security-Policy", POLICY), ("Cross-Origin-Opener-Policy", "same-origin")
        if not self.is_secure:
            return guards
        return *guards, ("Strict-Transport-Security", f"max-age={_YEAR_SECONDS}")

    def page(
        self,
        asked: routing.Headers,
        name: str,
        values: Mapping[str, Any],
        /,
        *,
        status: int = 200,
        headers: tuple[tuple[str, str], ...] = (),
    ) -> routing.Response:
        """A rendered page, compressed for whoever asks for that."""
        content = self.pages.render(name, values)
        headers = (*self.headers, *headers, routing.VARIES_BY_ENCODING)
        if asked.accepts_gzip:
            content, headers = _compressed(content), (*headers, routing.GZIP)
        return routing.Response(status, content, headers=headers, content_type=HTML)


def _compressed(content: bytes) -> bytes:
    """A page in gzip (RFC 1952), with a name of random length in its header.

    A compressed page is shorter if what somebody put into its URL is also on it: whoever can open pages in the browser
    of a user and see the lengths could guess what is on them, letter by letter (BREACH). The cookies are `SameSite`, so
    another site can only open whole windows; the CSRF token is another text each time (services/people/sessions.py);
    and a length that is random makes each guess take many pages.
    """
    packed = gzip.compress(content, GZIP_LEVEL, mtime=0)
    padding = b"-" * secrets.randbelow(MAX_PADDING_BYTES + 1)
    return packed[:3] + _FILE_NAME_FLAG + packed[4:10] + padding + b"\0" + packed[10:]


def build(
    settings: config.Settings,
    *,
    mail: dev_inbox.Inbox | None,
    is_stopping: Callable[[], bool],
    operator_state: services_operator_state.OperatorState,
) -> Site:
    loaded = static_files.load()
    return Site(
        pages=Pages(loaded.addresses.__getitem__, command=mail.command if mail else "postroad {}".format),
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
