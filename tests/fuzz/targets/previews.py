"""Mail that is shown: its tree of parts and its HTML, from any octets.

Holds: nothing is raised; parts are in order, inside the message and within the bounds; what was decoded is as large as
it was said to be; every `<` of the HTML for the frame begins a tag that may stand there, by a pattern and by the
standard library's reader of HTML; no attribute runs, loads or leads away.
"""

import html.parser
import re
from typing import Final

from postroad.protocol.mime import file_names, preview_parser
from postroad.protocol.text import html_preview
from tests.fuzz import target
from tests.protocol.mime import mail_corpus
from tests.security import hostile_html

PIXEL: Final = "data:image/gif;base64,AAAA"
MAX_SHOWN: Final = 500
_TAG: Final = re.compile(r"</?([a-z][a-z0-9:_-]*)((?: [a-z][a-z0-9:_-]*(?:=\"[^\"<>]*\")?)*)>")
_STYLE: Final = re.compile(r"<style>[^<]*</style>")
_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")


def check(data: bytes) -> None:
    reading = preview_parser.read(data)
    assert len(reading.parts) <= preview_parser.BOUNDS.parts
    assert len(reading.headers) <= preview_parser.BOUNDS.fields
    assert not any(_CONTROLS.search(name + value) for name, value in reading.headers)
    end = 0
    for index, part in enumerate(reading.parts):
        assert part.index == index
        assert end <= part.begin <= part.end <= len(data)
        end = part.end
        assert len(reading.body(part)) == part.size
        text, _ = reading.text(part, max_length=MAX_SHOWN)
        assert len(text) <= MAX_SHOWN
        text.encode()
        if part.filename is not None:
            assert not _CONTROLS.search(part.filename)
            file_names.download_disposition(part.filename)
        if "html" in part.content_type:
            _check_html(text)
    _check_html(data.decode("utf-8", "replace"))


def _check_html(source: str) -> None:
    rendered = html_preview.render(source, _image)
    before, style, after = rendered.partition(html_preview.STYLE)
    assert style
    assert before in {"", "<!doctype html>"}
    after = _STYLE.sub("", after)
    at = after.find("<")
    while at >= 0:
        tag = _TAG.match(after, at)
        assert tag is not None, f"not a tag: {after[at : at + 60]!r}"
        assert tag[1] not in html_preview.DROPPED_ELEMENTS | html_preview.EMPTIED_ELEMENTS
        at = after.find("<", tag.end())
    _SafetyParser().feed(rendered)


def _image(content_id: str) -> str | None:
    return PIXEL if "@" in content_id else None


class _SafetyParser(html.parser.HTMLParser):
    """Another reader of HTML, who sees no danger either."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag not in html_preview.DROPPED_ELEMENTS | html_preview.EMPTIED_ELEMENTS
        for name, value in attrs:
            assert not name.startswith("on")
            assert name not in html_preview.DROPPED_ATTRIBUTES
            if name in html_preview.LINKING_ATTRIBUTES:
                assert value is not None
                assert value.startswith("#")
            if name in html_preview.LOADING_ATTRIBUTES:
                assert value is not None
                assert value.lower().startswith("data:image/")


TARGET: Final = target.Target(
    name="preview",
    open=target.plain(check),
    watches=(
        "protocol/mime/preview_parser.py",
        "protocol/mime/part_walker.py",
        "protocol/text/html_preview.py",
        "protocol/mime/part_walker.py",
        "protocol/mime/header_fields.py",
        "protocol/mime/file_names.py",
    ),
    seeds=(
        *mail_corpus.MAIL.values(),
        *(text.encode() for text in (hostile_html.BY_ITSELF | hostile_html.BY_CLICK | hostile_html.BY_STYLE).values()),
    ),
    max_octets=3_000,
    steps=(20_000, 300),
)
