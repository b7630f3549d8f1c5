"""`/tail`: the events of the newest messages, one line each."""

import html
import re

import msgspec

from postroad import context
from postroad.model.bounces import disposition
from postroad.services.messages import lookup, message_history, queue_changes
from postroad.storage.mail import attempts
from tests import accepted_mail, contexts
from tests.dashboard.browser_client import Browser
from tests.dashboard.sample_account import HOSTILE
from tests.services import claimed_mail


def lines(text: str) -> list[tuple[str, ...]]:
    """Event, message and the rest of each line."""
    shape = (
        r'<li data-key="[^"]+">.*?<span class="event [^"]*">(\w+)</span> <a href="/messages/(\w+)">\w+</a> (.*?)</li>'
    )
    return [tuple(map(html.unescape, line)) for line in re.findall(shape, text, re.DOTALL)]


async def test_every_event_is_a_line_oldest_first(
    ctx: context.Context, browser: Browser, stranger: Browser, clock: contexts.Clock
) -> None:
    message_id, (ada, bob) = await claimed_mail.accepted(ctx, browser.account_id, "ada@example.net", "bob@example.net")
    clock.now += contexts.SECOND
    for one, verdict, reply in (
        (ada, disposition.Verdict.RETRY, "451 4.7.1 later"),
        (bob, disposition.Verdict.BOUNCED, f"550 5.1.1 {HOSTILE}"),
    ):
        code = int(reply[:3])
        outcome = claimed_mail.outcome(ctx, one, verdict, recipient_count=2, code=code, response=reply)
        await ctx.outcome_commits.submit([outcome])
        clock.now += contexts.SECOND
    canceled = await accepted_mail.accept(ctx, browser.account_id, subject="Never", to=("eve@example.net",))
    await queue_changes.cancel_message(ctx, browser.account_id, canceled)
    page = (await browser.get("/tail")).text
    assert [line[:2] for line in lines(page)] == [
        ("accepted", message_id),
        ("deferred", message_id),
        ("bounced", message_id),
        ("accepted", canceled),
        ("canceled", canceled),
    ]
    assert lines(page)[1][2] == "ada@example.net  451 4.7.1 later"
    assert lines(page)[2][2].startswith("bob@example.net  550 5.1.1 <script>")
    assert "<script>alert" not in page
    assert lines(page)[4][2] == "eve@example.net  canceled by the sender"
    assert 'id="tail" data-live="lines"' in page
    assert [line[1] for line in lines((await browser.get("/tail", search="never")).text)] == [canceled, canceled]
    assert lines((await stranger.get("/tail")).text) == []


async def test_what_is_read_does_not_grow_with_recipients_attempts_and_replies(
    ctx: context.Context, browser: Browser, clock: contexts.Clock
) -> None:
    """Seven messages to 50 people each, who were tried 20 times and whose host always replied at length."""
    await accepted_mail.allow_sending(ctx, browser.account_id)
    ids = []
    for number in range(7):
        clock.now += contexts.SECOND
        to = tuple(f"person{one}@example.net" for one in range(50))
        message_id, claimed = await claimed_mail.another(ctx, browser.account_id, *to)
        ids.append(message_id)
        retries = [
            claimed_mail.outcome(
                ctx, one, disposition.Verdict.RETRY, recipient_count=50, code=451, response=f"{number} " + 1_000 * "x "
            ).attempt
            for one in claimed
        ]
        tried = [
            msgspec.structs.replace(retry, started_at=clock.now + place)
            for retry in retries
            if retry is not None
            for place in range(20)
        ]
        async with ctx.store.transaction() as tx:
            await attempts.insert(tx, tried)
    async with ctx.store.scanning() as tx:
        ended = await attempts.latest_ends(tx, browser.account_id, ids, limit=300, characters=300)
    assert (len(ended), {len(one.response) for one in ended}) == (7 * 300, {300})
    found = await lookup.search(ctx, browser.account_id, "", limit=message_history.MAX_TAIL_MESSAGES, cursor=None)
    events = await message_history.newest_events(ctx, browser.account_id, found)
    assert len(events) == len({one.key for one in events}) == 300
    # The oldest has no room beside 300 recipients of newer ones, and the newest has all of the latest attempts.
    assert {one.message_id for one in events} == {ids[-1]}


async def test_a_wrong_search_is_kept(browser: Browser) -> None:
    answer = await browser.get("/tail", search="stauts:failed")
    assert answer.status_code == 400
    assert "did you mean status:" in answer.text
    assert 'value="stauts:failed"' in answer.text
