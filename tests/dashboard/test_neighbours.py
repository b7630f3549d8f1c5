"""From one message to the next in the results of a search."""

import html
import re

import pytest

from postroad import context
from postroad.services.messages import lookup
from tests import accepted_mail, contexts
from tests.dashboard.browser_client import Browser


def urls(text: str) -> dict[str, str]:
    """The links of the bar by name."""
    (bar,) = re.findall(r'<div class="neighbours">.*?</div>', text, re.DOTALL)
    return {name: html.unescape(url) for url, name in re.findall(r'href="([^"]*)">([^<]*)<', bar)}


async def test_the_way_to_the_next_message_and_back_keeps_the_search(
    ctx: context.Context, browser: Browser, stranger: Browser, clock: contexts.Clock
) -> None:
    await accepted_mail.allow_sending(ctx, browser.account_id)
    sent = {}
    for subject in ("Invoice 1", "Welcome", "Invoice 2", "Welcome back", "Invoice 3"):
        sent[subject] = await accepted_mail.accept(ctx, browser.account_id, subject=subject)
        clock.now += 100 * contexts.SECOND
    listed = (await browser.get("/messages", search="invoice")).text
    first, second, third = (sent[f"Invoice {number}"] for number in (1, 2, 3))
    assert f'href="/messages/{second}?search=invoice"' in listed
    assert urls((await browser.get(f"/messages/{second}", search="invoice")).text) == {
        "Messages": "/messages?search=invoice",
        "Newer": f"/messages/{third}?search=invoice",
        "Older": f"/messages/{first}?search=invoice",
    }
    assert "Newer" not in urls((await browser.get(f"/messages/{third}", search="invoice")).text)
    assert "Older" not in urls((await browser.get(f"/messages/{first}", search="invoice")).text)
    everything = urls((await browser.get(f"/messages/{second}")).text)
    assert (everything["Newer"], everything["Older"]) == (
        f"/messages/{sent['Welcome back']}",
        f"/messages/{sent['Welcome']}",
    )
    shown = (await browser.get(f"/messages/{second}", search="invoice")).text
    assert f'href="/messages/{second}?view=headers&amp;search=invoice#preview"' in shown
    assert urls((await browser.get(f"/messages/{second}", search="stauts:x")).text) == {
        "Messages": "/messages?search=stauts%3Ax"
    }
    assert (await stranger.get(f"/messages/{second}", search="invoice")).status_code == 404


async def test_the_next_one_is_found_among_many_and_far_away_and_within_a_bound(
    ctx: context.Context, browser: Browser, clock: contexts.Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await accepted_mail.allow_sending(ctx, browser.account_id)
    sent: list[str] = []
    for pause in (90 * 24 * 3600 * contexts.SECOND, *[1000] * 5):
        subject = "Rare" if len(sent) in {0, 5} else "Common"
        sent.append(await accepted_mail.accept(ctx, browser.account_id, subject=subject))
        clock.now += pause
    found = [await lookup.find_neighbours(ctx, browser.account_id, lookup.Filters(), one) for one in sent]
    assert [one.newer for one in found] == [*sent[1:], None]
    assert [one.older for one in found] == [None, *sent[:-1]]
    rare = lookup.Filters(words=("rare",))
    assert await lookup.find_neighbours(ctx, browser.account_id, rare, sent[0]) == lookup.Neighbours(newer=sent[5])
    assert await lookup.find_neighbours(ctx, browser.account_id, rare, sent[5]) == lookup.Neighbours(older=sent[0])
    # What is further away than is examined, or takes too long, has no link.
    monkeypatch.setattr(lookup, "NEIGHBOURS_EXAMINED", 4)
    assert await lookup.find_neighbours(ctx, browser.account_id, rare, sent[0]) == lookup.Neighbours()
    assert await lookup.find_neighbours(ctx, browser.account_id, rare, sent[5]) == lookup.Neighbours()
    monkeypatch.setattr(lookup, "NEIGHBOURS_SECONDS", -1.0)
    assert await lookup.find_neighbours(ctx, browser.account_id, lookup.Filters(), sent[2]) == lookup.Neighbours()
