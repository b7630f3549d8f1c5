"""Layouts and parts: templates that another template uses.

A layout is a template with `{{> content}}`, the place of what uses it. `{{> footer}}` inserts the body of the template
`footer`: its text in a text, its HTML in HTML. What is used is read when a message is sent, so a change of a layout
changes all mail with it at once. A template cannot be removed while another uses it.
"""

import dataclasses
from typing import Final

from postroad import errors
from postroad.protocol.text import mustache
from postroad.storage.engine import store
from postroad.storage.mail import templates

CONTENT: Final = "content"
# Each is a query for every message.
MAX_USED: Final = 10


def aliases(*, text: str | None, html: str | None, layout: str | None) -> list[str]:
    """What a template uses: its layout, and the parts in its bodies."""
    named = (alias for source in (text, html) for alias in mustache.parts_of(mustache.parse(source or "")))
    found = dict.fromkeys([layout] if layout else ())
    return [alias for alias in found | dict.fromkeys(named) if alias != CONTENT]


def check_layout(template: templates.Template) -> None:
    """Raise InvalidRequest if the layout of a template has no place for its content."""
    layouts = [(one.text, one.html) for one in template.used if one.alias == template.layout]
    sources = [source or "" for bodies in layouts for source in bodies]
    if template.layout and not any(CONTENT in mustache.parts_of(mustache.parse(source)) for source in sources):
        raise errors.InvalidRequest(f"layout: {template.layout!r} is not a layout; add {{{{> content}}}} to it")


async def load(tx: store.Transaction, template: templates.Template) -> templates.Template:
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
    return dataclasses.replace(template, used=tuple(found.values()))
