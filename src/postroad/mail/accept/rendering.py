"""Rendering of templates: values are inserted once, HTML-escaped in `html`, unchanged in `text` and the subject.

A layout is a template with `{{> content}}`, the place of what uses it. `{{> footer}}` inserts the body of the template
`footer`: its text in a text, its HTML in HTML. What is used is read when a message is sent, so a change of a layout
changes all mail with it at once. A template cannot be removed while another uses it.
"""

import dataclasses
import math
import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from postroad import errors
from postroad.mail.accept import validation
from postroad.model.mail import statuses
from postroad.protocol.text import mustache, placeholders
from postroad.storage.engine import store
from postroad.storage.mail import templates

CONTENT: Final = "content"
# Each is a query for every message.
MAX_USED: Final = 10
# Parsing and filling in this many placeholders takes about two milliseconds.
INLINE_PLACEHOLDERS: Final = 1_000
# Neither can be stored as text or sent as mail: NUL, and unpaired surrogates.
UNSENDABLE: Final = re.compile("[\\0\ud800-\udfff]")


class Rendered(msgspec.Struct, frozen=True):
    subject: str
    text: str | None
    html: str | None


def render(
    template: templates.Template,
    variables: Mapping[str, statuses.TemplateValue],
    *,
    subject: str | None = None,
    content: str | None = None,
) -> Rendered:
    """Render a template. A given subject replaces the template's own and is used unchanged.

    `content` is what a layout is shown with; without it, a layout cannot be rendered.
    """
    check_layout(template)
    parsed = mustache.parse(template.subject) if subject is None else placeholders.Template((subject,), ())
    bodies = {field: _with_parts(template, field, content) for field in ("text", "html")}
    rendered = Rendered(**_render_all({"subject": (parsed, {}), **bodies}, variables))
    validation.check_subject(rendered.subject)
    return rendered


def has_lists(variables: Mapping[str, statuses.TemplateValue]) -> bool:
    """Whether a template may loop over values, which can take a tenth of a second and is known only afterwards."""
    return any(isinstance(value, list | dict) for value in variables.values())


def is_costly(template: templates.Template) -> bool:
    """Whether rendering it takes so long that other requests should not wait for it, however little it becomes."""
    sources = [source or "" for used in (template, *template.used) for source in (used.text, used.html)]
    # Parts in parts multiply: a path of them passes each template once, or soon gets too deep.
    repeats = math.prod(max(1, source.count("{{>")) for source in sources)
    return sum(source.count("{{") for source in sources) * repeats > INLINE_PLACEHOLDERS


def _with_parts(
    template: templates.Template, field: str, content: str | None
) -> tuple[mustache.AnyTemplate, Mapping[str, str]] | None:
    """The outermost template of a body, which is the layout if there is one, and the sources of what it uses."""
    source: str | None = getattr(template, field)
    if source is None:
        return None
    parts: dict[str, str] = {part.alias: getattr(part, field) or "" for part in template.used}
    if outer := parts.get(template.layout or ""):
        return mustache.parse(outer), {**parts, CONTENT: source}
    parsed = mustache.parse(source)
    if CONTENT in mustache.parts_of(parsed):
        if content is None:
            raise errors.InvalidRequest(f"template: {template.alias!r} is a layout; send a template that uses it")
        parts[CONTENT] = content
    return parsed, parts


def _render_all(
    parsed: Mapping[str, tuple[mustache.AnyTemplate, Mapping[str, str]] | None],
    variables: Mapping[str, statuses.TemplateValue],
) -> dict[str, Any]:
    """The rendered parts. Values that are missing anywhere are named together, before any other error."""
    rendered: dict[str, str | None] = {}
    missing: dict[str, None] = {}
    refusal: errors.PostroadError | None = None
    for field, found in parsed.items():
        try:
            rendered[field] = None if found is None else _render(field, *found, variables)
        except placeholders.MissingValues as problem:
            missing |= dict.fromkeys(problem.names)
        except errors.PostroadError as problem:
            refusal = refusal or problem
    if missing:
        listed = ", ".join(f"'{name}'" for name in missing)
        raise errors.InvalidRequest(f"variables: {listed} {'is' if len(missing) == 1 else 'are'} missing")
    if refusal:
        raise refusal
    return rendered


def _render(
    field: str,
    template: mustache.AnyTemplate,
    parts: Mapping[str, str],
    variables: Mapping[str, statuses.TemplateValue],
) -> str:
    try:
        if isinstance(template, placeholders.Template):
            text = template.render(variables, escape_html=field == "html")
        else:
            text = template.render(variables, escape_html=field == "html", parts=parts)
    except placeholders.RenderedTooLarge as problem:
        raise errors.PayloadTooLarge(f"{field}: {problem}") from None
    except placeholders.MissingValues:
        raise
    except placeholders.TemplateError as problem:
        raise errors.InvalidRequest(f"variables: {problem}") from None
    if unsendable := UNSENDABLE.search(text):
        raise errors.InvalidRequest(f"variables: the character U+{ord(unsendable[0]):04X} is not allowed in mail")
    return text


def used_aliases(*, text: str | None, html: str | None, layout: str | None) -> list[str]:
    """What a template uses: its layout, and the parts in its bodies."""
    named = (alias for source in (text, html) for alias in mustache.parts_of(mustache.parse(source or "")))
    found = dict.fromkeys([layout] if layout else ())
    return [alias for alias in found | dict.fromkeys(named) if alias != CONTENT]


def check_layout(template: templates.Template) -> None:
    layouts = [(part.text, part.html) for part in template.used if part.alias == template.layout]
    sources = [source or "" for bodies in layouts for source in bodies]
    if template.layout and not any(CONTENT in mustache.parts_of(mustache.parse(source)) for source in sources):
        raise errors.InvalidRequest(f"layout: {template.layout!r} is not a layout; add {{{{> content}}}} to it")


async def load_parts(tx: store.Transaction, template: templates.Template) -> templates.Template:
    """The template with all that it uses. Raises InvalidRequest for what does not exist, or is too much.

    Nothing is parsed here, in a transaction: rendering checks the layout.
    """
    if not template.uses:
        return template
    found: dict[str, templates.Template] = {}
    left = template.uses.split()
    while left:
        alias = left.pop()
        if alias in found:
            continue
        used = await templates.by_alias(tx, template.account_id, alias)
        if used is None or not used.is_published:
            reason = "does not exist" if used is None else "is not published"
            raise errors.InvalidRequest(f"template: {template.alias!r} uses the template {alias!r}, which {reason}")
        if alias == template.alias or len(found) == MAX_USED:
            raise errors.InvalidRequest(
                f"template: {template.alias!r} uses itself, or more than {MAX_USED} other templates"
            )
        found[alias] = used
        left += (used.uses or "").split()
    return dataclasses.replace(template, used=tuple(found.values()))
