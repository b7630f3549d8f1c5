"""The page of the audit log, its filters, and the log as a file."""

import html
import re

import pytest

from postroad import context
from postroad.model.units import times
from postroad.services import audit_log
from postroad.services.accounts import credits
from tests import contexts
from tests.dashboard.browser_client import Browser


async def test_an_account_in_which_nothing_was_changed_learns_what_would_be_here(
    ctx: context.Context, browser: Browser
) -> None:
    async with ctx.store.transaction() as tx:
        await tx.run_script("DELETE FROM audit_log")
    text = (await browser.get("/audit-log")).text
    assert "No entries yet" in text


async def test_a_change_by_a_user_shows_who_from_where_and_by_which_request(
    clock: contexts.Clock, browser: Browser, reader: Browser
) -> None:
    clock.pass_seconds(1)
    done = await browser.post("/suppressions", {"email": "ada@example.net"})
    text = (await reader.get("/audit-log")).text
    assert ">API key: created</option>" in text
    row = text.partition("<tbody>")[2].partition("</tr>")[0]
    assert "<strong>owner@mine.example</strong> added" in row
    assert "added ada@example.net to the suppression list" in row
    assert done.headers["x-request-id"] in row
    assert ">127.0.0.1</code>" in row


async def test_what_an_operator_did_is_shown_too(ctx: context.Context, browser: Browser) -> None:
    await credits.add(ctx, browser.account_id, 7, "gift")
    text = (await browser.get("/audit-log")).text
    assert "<strong>operator</strong> added" in text
    assert "added 7 credits (gift)" in text


def subjects(text: str) -> list[str]:
    return re.findall(r"added (\S+) to the suppression list", text)


async def test_entries_are_filtered_by_actor_action_target_and_date(
    ctx: context.Context, clock: contexts.Clock, browser: Browser
) -> None:
    for name in ("ada", "alan"):
        clock.pass_seconds(1)
        await browser.post("/suppressions", {"email": f"{name}@example.net"})
    await credits.add(ctx, browser.account_id, 7, "gift")
    today = times.to_wire(clock.now)[:10]
    for filters, found in (
        ({"subject": "ADA@"}, ["ada@example.net"]),
        ({"action": "suppression"}, ["alan@example.net", "ada@example.net"]),
        ({"action": "suppression.added", "actor": "owner@mine"}, ["alan@example.net", "ada@example.net"]),
        ({"actor": "operator", "subject": ""}, []),
        ({"since": today, "until": today, "action": "suppression"}, ["alan@example.net", "ada@example.net"]),
        ({"since": "2200-01-01"}, []),
        ({"until": "2001-01-01"}, []),
        ({"subject": "a%@"}, []),
        ({"actor": "\0"}, ["alan@example.net", "ada@example.net"]),
    ):
        page = await browser.get("/audit-log", **filters)
        assert page.status_code == 200, filters
        assert subjects(page.text) == found, filters
    assert "added 7 credits" in (await browser.get("/audit-log", actor="operator")).text
    assert (await browser.get("/audit-log", since="yesterday")).status_code == 400
    # The last day of the calendar has no next one.
    for path in ("/audit-log", "/audit-log/export"):
        assert (await browser.get(path, until="9999-12-31")).status_code == 400
    assert "No entries match" in (await browser.get("/audit-log", subject="nothing like it")).text


async def test_a_filter_counts_in_the_file_too(ctx: context.Context, clock: contexts.Clock, browser: Browser) -> None:
    for number in (1, 2):
        clock.pass_seconds(1)
        await credits.add(ctx, browser.account_id, number, "=cmd()")
    file = await browser.get("/audit-log/export", action="credits")
    assert file.headers["content-disposition"] == 'attachment; filename="audit-log.csv"'
    rows = file.text.splitlines()
    assert rows[0] == "created_at,actor_kind,actor,action,subject,detail,text,client_address,request_id,id"
    assert len(rows) == 3
    assert ",operator,operator,credits.added,2,'=cmd(),added 2 credits (=cmd())," in rows[1]


async def test_a_search_examines_so_many_entries_and_continues(
    ctx: context.Context, clock: contexts.Clock, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_log, "MAX_EXAMINED", 2)
    clock.pass_seconds(1)
    await browser.post("/suppressions", {"email": "ada@example.net"})
    for number in (1, 2, 3):
        clock.pass_seconds(1)
        await credits.add(ctx, browser.account_id, number, None)
    page = (await browser.get("/audit-log", subject="ada@")).text
    assert "No matches among the newest entries" in page
    link = html.unescape(page.partition('<nav class="more"')[2].partition('href="')[2].partition('"')[0])
    assert subjects((await browser.get(link)).text) == ["ada@example.net"]
    whole = (await browser.get("/audit-log/export", subject="ada@")).text
    assert len(whole.splitlines()) == 2
