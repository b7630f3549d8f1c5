"""Layouts and parts: templates that another template uses.

A layout is a template with `{{> content}}`, the place of what uses it. `{{> footer}}` inserts the body of the template
`footer`: its text in a text, its HTML in HTML. What is used is read when a message is sent, so a change of a layout
changes all mail with it at once. A template cannot be removed while another uses it.
"""

import dataclasses
from typing import Final

from postroad import errors
from postroad.protocol import mustache
from postroad.storage import store, templates

CONTENT: Final = "content"
# Each is a query for every message.
MAX_USED: Final = 10


def aliases(*, text: str | None, html: str | None, layout: str | None) -> list[str]:
    """What a template uses: its layout, and the parts in its bodies."""
    named = (alias for source in (text, html) for alias in mustache.parts_of(mustache.parse(source or "")))
    found = dict.fromkeys([layout] if layout else ())
    return [alias for alias in found | dict.fromkeys(named) if alias != CONTENT]


def is_layout(*, text: str | None, html: str | None) -> bool:
    """Whether a template has a place for the content of another."""
    return any(CONTENT in mustache.parts_of(mustache.parse(source or "")) for source in (text, html))


async def load(tx: store.Transaction, template: templates.Template) -> templates.Template:
    """The template with all that it uses. Raises InvalidRequest for what does not exist, or is too much."""
    if not template.uses:
        return template
    found: dict[str, templates.Template] = {}
    left = template.uses.split()
    while left:
        alias = left.pop()
        if alias in found:
            continue
        one = await templates.by_alias(tx, template.account_id, alias)
        if one is None:
            raise errors.InvalidRequest(
                f"template: {template.alias!r} uses the template {alias!r}, which does not exist"
            )
        if alias == template.alias or len(found) == MAX_USED:
            raise errors.InvalidRequest(
                f"template: {template.alias!r} uses itself, or more than {MAX_USED} other templates"
            )
        found[alias] = one
        left += (one.uses or "").split()
    if template.layout and not is_layout(text=found[template.layout].text, html=found[template.layout].html):
        raise errors.InvalidRequest(f"layout: {template.layout!r} is not a layout; add {{{{> content}}}} to it")
    return dataclasses.replace(template, used=tuple(found.values()))
