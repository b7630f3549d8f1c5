"""From a page's name and its values to HTML: Jinja with everything escaped, and the few words that pages share.

Nothing here trusts a value. Text of others (subjects, replies, names) goes through `plain`, which makes visible what
would otherwise hide or turn the text around it: control characters and the marks that change the direction of writing.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from importlib import resources
from importlib.resources import abc
from typing import Any, Final

import jinja2
import markupsafe

from postroad.model import times

_HIDDEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e0fff]"
)
_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400
_KIBIBYTE: Final = 1_024
_UNITS: Final = ((_DAY, "day"), (_HOUR, "hour"), (_MINUTE, "minute"), (1, "second"))


class Pages:
    """The pages of the dashboard, read once and kept."""

    def __init__(self, address: Callable[[str], str]) -> None:
        self._environment = jinja2.Environment(
            # Read at once: whoever replaces the files does not change a service that runs.
            loader=jinja2.DictLoader(dict(_sources("", resources.files(__package__).joinpath("pages")))),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
            extensions=["jinja2.ext.do"],
        )
        self._environment.globals["asset"] = address
        self._environment.filters.update(FILTERS)

    def render(self, name: str, values: Mapping[str, Any]) -> bytes:
        """A page as it is sent."""
        return self._environment.get_template(name).render(values).encode()

    @property
    def names(self) -> list[str]:
        """Every page and part that there is."""
        return self._environment.list_templates()


def _sources(path: str, folder: abc.Traversable) -> Iterator[tuple[str, str]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _sources(f"{path}{entry.name}/", entry)
        else:
            yield f"{path}{entry.name}", entry.read_text()


def plain(text: object) -> str:
    """Text of others: what cannot be seen is shown as a sign."""
    return _HIDDEN.sub("\ufffd", str(text))


def when(moment: int | None) -> markupsafe.Markup:
    """A moment as people write it, in UTC; a script shows it in the time of whoever reads it."""
    if moment is None:
        return markupsafe.Markup('<span class="quiet">never</span>')
    wire = times.to_wire(moment)
    shown = f"{wire[:10]} {wire[11:16]}"
    return markupsafe.Markup('<time datetime="{}" title="{} UTC">{}</time>').format(
        wire, f"{wire[:10]} {wire[11:19]}", shown
    )


def since(moment: int, now: int) -> str:
    """How long ago, roughly; or how long until then."""
    seconds = (now - moment) // times.SECOND
    text = span(abs(seconds))
    return f"{text} ago" if seconds >= 0 else f"in {text}"


def span(seconds: float) -> str:
    """So many seconds, in the largest unit that fits."""
    for size, name in _UNITS:
        if seconds >= size:
            count = int(seconds // size)
            return f"{count} {name}" if count == 1 else f"{count} {name}s"
    return "a moment"


def number(value: int) -> str:
    """A whole number that can be read."""
    return f"{value:,}"


def size(value: int) -> str:
    """So many bytes."""
    if value < _KIBIBYTE:
        return f"{value} B"
    for unit in ("KiB", "MiB", "GiB"):
        value_in_unit = value / _KIBIBYTE
        if value_in_unit < _KIBIBYTE:
            return f"{value_in_unit:.1f} {unit}"
        value = int(value_in_unit)
    return f"{value:,} GiB"


def percent(part: int, whole: int) -> str:
    """A part of a whole; of nothing there is no part."""
    if whole == 0:
        return "none"
    return f"{100 * part / whole:.1f} %" if 0 < part < whole else f"{100 * part // whole} %"


def milliseconds(microseconds: int) -> str:
    """A short time."""
    return f"{microseconds / 1_000:,.0f} ms" if microseconds < times.SECOND else f"{microseconds / times.SECOND:,.1f} s"


def words(name: str) -> str:
    """A name of ours as people say it."""
    return name.replace("_", " ")


FILTERS: Final[Mapping[str, Callable[..., Any]]] = {
    "plain": plain,
    "when": when,
    "since": since,
    "span": span,
    "number": number,
    "size": size,
    "percent": percent,
    "milliseconds": milliseconds,
    "words": words,
}
