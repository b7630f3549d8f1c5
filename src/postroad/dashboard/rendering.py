"""Renders pages: Jinja with autoescape, and the filters that pages share.

No value is trusted. External text (subjects, replies, names) goes through `plain`, which makes control characters and
bidirectional marks visible.
"""

import contextvars
import re
from collections.abc import Callable, Iterator, Mapping
from importlib import resources
from importlib.resources import abc
from typing import Any, Final

import jinja2
import markupsafe

from postroad.dashboard import urls
from postroad.model import time_zones, times

_HIDDEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e0fff]"
)
_ABOUT_FIELD: Final = re.compile(r"[a-z_]+(\[\d+\])?: ")
_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400
_SHORT_UNITS: Final = ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "min"), (1, "s"))
_JUST_NOW: Final = 5  # seconds: less is not worth reading
_NEVER: Final = markupsafe.Markup('<span class="muted">never</span>')
# The zone of the page that is being rendered. Macros do not see the values of a page, but show times.
_zone: Final = contextvars.ContextVar("zone", default=time_zones.UTC)
_ACRONYMS: Final = {"api": "API"}
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
        token = _zone.set(values.get("zone", time_zones.UTC))
        try:
            return self._environment.get_template(name).render(values).encode()
        finally:
            _zone.reset(token)

    @property
    def names(self) -> list[str]:
        """The names of all templates."""
        return self._environment.list_templates()


def _sources(path: str, folder: abc.Traversable) -> Iterator[tuple[str, str]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _sources(f"{path}{entry.name}/", entry)
        else:
            yield f"{path}{entry.name}", entry.read_text()


def plain(text: object) -> str:
    """External text with invisible characters replaced by U+FFFD."""
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
    local = time_zones.local(moment, zone)
    shown = local.strftime("%Y-%m-%d %H:%M:%S")
    offset = "" if zone is time_zones.UTC else f" ({time_zones.offset_text(local)})"
    return shown, f"{shown} {zone.key}{offset}"


def relative_time(moment: int, now: int) -> str:
    """Roughly how long ago, or in how long."""
    seconds = (now - moment) // times.SECOND
    text = duration(abs(seconds))
    return f"{text} ago" if seconds >= 0 else f"in {text}"


def duration(seconds: float) -> str:
    """A duration in the largest unit that fits."""
    for size, name in _UNITS:
        if seconds >= size:
            count = int(seconds // size)
            return f"{count} {name}" if count == 1 else f"{count} {name}s"
    return "a moment"


def number(value: int) -> str:
    """A number with thousands separators."""
    return f"{value:,}"


def size(value: int) -> str:
    """A size in bytes, KiB, MiB or GiB."""
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
    """How long something took, in two or three digits."""
    seconds = microseconds / times.SECOND
    if seconds < _MINUTE:
        return milliseconds(microseconds)
    return f"{seconds / _MINUTE:,.0f} min" if seconds < 2 * _HOUR else f"{seconds / _HOUR:,.1f} h"


def humanize(name: str) -> str:
    """An identifier with spaces."""
    return " ".join(_ACRONYMS.get(word, word) for word in name.replace("_", " ").split(" "))


def sentence(text: str) -> str:
    """A text with a capital letter and a full stop."""
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")


def error_sentence(text: str) -> str:
    """An error message as a sentence, unless it begins with the name of a form field."""
    return text if _ABOUT_FIELD.match(text) else sentence(text)


FILTERS: Final[Mapping[str, Callable[..., Any]]] = {
    "plain": plain,
    "when": when,
    "ago": ago,
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
    "message_url": urls.message,
    "messages_with": urls.messages_with,
    "recipient_url": urls.recipient,
}
