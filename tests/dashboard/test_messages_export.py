"""The results of a search as a CSV file."""

import csv
import io

import pytest

from postroad import context, errors
from postroad.model.bounces import disposition
from postroad.services import usage_limits
from postroad.services.messages import export_csv, lookup
from tests import accepted_mail, contexts
from tests.dashboard.browser_client import Browser
from tests.services import claimed_mail


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


async def test_every_recipient_is_a_row_and_no_cell_is_a_formula(
    ctx: context.Context, browser: Browser, stranger: Browser, clock: contexts.Clock
) -> None:
    await accepted_mail.allow_sending(ctx, browser.account_id)
    message_id = await accepted_mail.accept(
        ctx,
        browser.account_id,
        sender='"=cmd()" <shop@example.com>',
        to=("ada@example.net", "bob@example.net"),
        subject="=HYPERLINK(1)",
        tags=("b", "@a"),
        metadata={"order": "1042"},
    )
    for one in await claimed_mail.claim_all(ctx, claimed_mail.WORKER):
        verdict = disposition.Verdict.BOUNCED if one.email_key.startswith("bob") else disposition.Verdict.DELIVERED
        code = 550 if verdict is disposition.Verdict.BOUNCED else 250
        reply = "-1 no such user, really"
        outcome = claimed_mail.outcome(ctx, one, verdict, recipient_count=2, code=code, response=reply)
        await ctx.outcome_commits.submit([outcome])
    clock.now += contexts.SECOND
    await accepted_mail.accept(ctx, browser.account_id, subject="Welcome")
    answer = await browser.get("/messages.csv", search="to:@example.net hyperlink")
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert answer.headers["content-disposition"] == 'attachment; filename="messages-to-example-net-hyperlink.csv"'
    ada, bob = rows(answer.text)
    assert list(ada) == list(export_csv.COLUMNS)
    assert (ada["message_id"], ada["to"], ada["status"]) == (message_id, "ada@example.net", "delivered")
    assert (ada["subject"], ada["tags"], ada["metadata"]) == ("'=HYPERLINK(1)", "'@a; b", '{"order":"1042"}')
    assert ada["accepted_at"] == "2027-01-15T08:00:00.000Z"
    assert (bob["status"], bob["code"], bob["reply"]) == ("bounced", "550", "'-1 no such user, really")
    assert (bob["source"], bob["mode"], bob["attempts"]) == ("api", "live", "1")
    assert len(rows((await browser.get("/messages.csv")).text)) == 3
    assert rows((await stranger.get("/messages.csv")).text) == []


async def test_it_comes_in_steps_of_bounded_size(
    ctx: context.Context, browser: Browser, clock: contexts.Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await accepted_mail.allow_sending(ctx, browser.account_id)
    for number in range(5):
        await accepted_mail.accept(ctx, browser.account_id, subject=f"Letter {number}")
        clock.now += contexts.SECOND
    monkeypatch.setattr(export_csv, "STEP_MESSAGES", 2)
    filters = lookup.Filters()
    parts = [part async for part in export_csv.export(ctx, browser.account_id, filters)]
    assert [part.count(b"\n") for part in parts] == [1, 2, 2, 1]
    subjects = [row["subject"] for row in rows(b"".join(parts).decode())]
    assert subjects == [f"Letter {number}" for number in (4, 3, 2, 1, 0)]
    assert not ctx.work_in_progress


async def test_a_slow_reader_loses_its_slot(
    ctx: context.Context, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    await accepted_mail.allow_sending(ctx, browser.account_id)
    for _ in range(3):
        await accepted_mail.accept(ctx, browser.account_id)
    monkeypatch.setattr(export_csv, "STEP_MESSAGES", 1)
    monkeypatch.setattr(export_csv, "STALLED_SECONDS", 0.0)
    monkeypatch.setattr(export_csv, "MIN_OCTETS_PER_SECOND", 10**12)
    parts = export_csv.export(ctx, browser.account_id, lookup.Filters())
    assert (await anext(parts)).startswith(b"message_id")
    assert await anext(parts)
    with pytest.raises(errors.ServiceUnavailable, match="the export was read too slowly"):
        await anext(parts)
    assert not ctx.work_in_progress


async def test_a_wrong_search_and_too_many_exports_are_refused(
    ctx: context.Context, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = await browser.get("/messages.csv", search="stauts:failed")
    assert answer.status_code == 400
    assert "did you mean status:" in answer.text
    monkeypatch.setattr(
        export_csv,
        "EXPORTS",
        usage_limits.WorkLimit("exports of messages", per_account=0, per_process=9, retry_seconds=5),
    )
    refused = await browser.get("/messages.csv")
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "5")
