"""What a row of the list says about its message."""

import re

import pytest

from postroad import context
from postroad.dashboard.mail import message_list
from postroad.model.bounces import disposition
from postroad.services.messages import queue_changes
from postroad.storage.mail import messages
from tests import accepted_mail, contexts
from tests.dashboard.browser_client import Browser
from tests.services import claimed_mail

NOW = 1_000
LATER = 2_000


def message(status: str, *, send_at: int | None = None) -> messages.Message:
    return messages.Message(
        "em_1", "acc_1", "api", "shop@example.com", "Hello", status, "reserved", 1, 1, 9, "req_1", 0, send_at
    )


def leading(status: str, *, reason: str | None = None, attempts: int = 1) -> messages.LeadingRecipient:
    return messages.LeadingRecipient("ada@example.net", status, attempts, 550, "550 no", reason)


@pytest.mark.parametrize(
    "of_message, of_recipient, badge",
    [
        ("failed", "bounced", "bounced"),
        ("failed", "expired", "expired"),
        ("failed", "failed", "failed"),
        ("failed", "canceled", "canceled"),
        ("partial", "bounced", "partial"),
        ("delivered", "delivered", "delivered"),
        ("queued", "queued", "queued"),
        ("queued", "deferred", "deferred"),
        # Of several recipients, one has its result already.
        ("queued", "bounced", "queued"),
    ],
)
def test_the_badge_says_what_became_of_the_recipients(of_message: str, of_recipient: str, badge: str) -> None:
    (row,) = message_list.rows([message(of_message)], {"em_1": leading(of_recipient)}, now=NOW)
    assert row.badge == badge


def test_a_message_for_later_is_scheduled_until_its_time() -> None:
    waiting = {"em_1": leading("queued", attempts=0)}
    for send_at, badge in ((LATER, "scheduled"), (NOW, "queued")):
        (row,) = message_list.rows([message("queued", send_at=send_at)], waiting, now=NOW)
        assert row.badge == badge


def test_the_reason_is_what_happened_in_plain_words() -> None:
    (row,) = message_list.rows([message("failed")], {"em_1": leading("bounced", reason="ip_blocked")}, now=NOW)
    assert (row.smtp_code, row.reason) == (550, "IP blocked")
    assert row.explanation.startswith("The provider, or a blocklist that it uses, blocks")
    # Never attempted: only the text of the decision is known.
    (row,) = message_list.rows([message("failed")], {"em_1": leading("bounced")}, now=NOW)
    assert row.reason == "550 no"
    (row,) = message_list.rows([message("delivered")], {"em_1": leading("delivered", reason="delivered")}, now=NOW)
    assert row.reason == ""


def test_a_message_that_was_removed_meanwhile_is_still_listed() -> None:
    (row,) = message_list.rows([message("queued")], {}, now=NOW)
    assert (row.badge, row.email) == ("queued", "")


async def test_the_row_shows_the_failure_among_several_recipients(
    ctx: context.Context, browser: Browser, clock: contexts.Clock
) -> None:
    message_id, claimed = await claimed_mail.accepted(
        ctx, browser.account_id, "ada@example.net", "bob@example.net", "eve@example.net"
    )
    verdicts = {"ada@example.net": disposition.Verdict.DELIVERED, "bob@example.net": disposition.Verdict.BOUNCED}
    for one in claimed:
        verdict = verdicts.get(one.email_key, disposition.Verdict.DELIVERED)
        outcome = claimed_mail.outcome(ctx, one, verdict, recipient_count=3, code=550, response="550 5.1.1 <b>who?</b>")
        await ctx.outcome_commits.submit([outcome])
    clock.now += contexts.SECOND
    canceled = await accepted_mail.accept(ctx, browser.account_id, subject="Never")
    await queue_changes.cancel_message(ctx, browser.account_id, canceled)
    text = (await browser.get("/messages")).text
    assert re.findall(r'<span class="status status-([a-z]+)">', text) == ["canceled", "partial"]
    rows = [row for row in text.split("<tr>") if "row-link" in row]
    assert 'title="bob@example.net and 2 more">bob@example.net</a> <span class="muted">+2</span>' in rows[1]
    # The reason is below the status, where there is one.
    reason = '<span class="wide reason muted small" title="'
    assert (reason in rows[0], reason in rows[1]) == (False, True)
    assert "<b>who?" not in text
    # One link for each row, which covers it.
    assert re.findall(r'<a class="row-link" href="/messages/([^"]*)"', text) == [canceled, message_id]
