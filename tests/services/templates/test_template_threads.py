"""A template with tens of thousands of tags takes a quarter of a second to parse: never on the event loop."""

import threading

import pytest

from postroad import context
from postroad.protocol.text import mustache
from postroad.services.templates import template_drafts, templates
from postroad.storage.people import accounts as stored_accounts

MANY_TAGS = "{{#a}}{{/a}}" * 2_000


@pytest.fixture
def parsed_on_the_loop(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the event loop's own thread parses."""
    found: list[str] = []
    parse = mustache.parse

    def watched(source: str) -> mustache.AnyTemplate:
        if threading.current_thread() is threading.main_thread() and len(source) >= len(MANY_TAGS):
            found.append(source)
        return parse(source)

    monkeypatch.setattr(mustache, "parse", watched)
    return found


async def test_a_large_template_is_saved_shown_edited_and_used_without_the_event_loop(
    ctx: context.Context, account: stored_accounts.Account, parsed_on_the_loop: list[str]
) -> None:
    layout = MANY_TAGS + "{{> content}}"
    await templates.put(ctx, account.id, "layout", subject="Layout", text=layout, html=layout)
    content = templates.Content("Hello", "{{a}}", None, "layout")
    saved = await templates.save(ctx, account.id, "hello", content)
    await template_drafts.save(ctx, account.id, "hello", content)
    assert await templates.names(ctx, await templates.find(ctx, account.id, "layout")) == ["a"]
    assert (await templates.preview(ctx, account.id, "hello", {"a": "b"})).text == "b"
    assert saved.uses == " layout "
    assert parsed_on_the_loop == []
