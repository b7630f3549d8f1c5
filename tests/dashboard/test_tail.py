"""`/tail`: the events of the newest messages, one line each."""

import html
import re

from postroad.model.bounces import disposition
from postroad.services import context
from postroad.services.queue import cancellation
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
    await cancellation.cancel_message(ctx, browser.account_id, canceled)
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


async def test_a_wrong_search_is_kept(browser: Browser) -> None:
    answer = await browser.get("/tail", search="stauts:failed")
    assert answer.status_code == 400
    assert "did you mean status:" in answer.text
    assert 'value="stauts:failed"' in answer.text
