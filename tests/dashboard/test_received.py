"""The pages of received mail: the list, one mail with what is known of its sender, and the routes."""

import re

import msgspec
import pytest

from postroad import context
from postroad.dashboard.mail import received as page
from postroad.mail.authentication import authenticate, dmarc_check, spf_check
from postroad.services.domains import domain_registry as domains
from postroad.services.inbound import routes
from postroad.storage.operations import retention
from tests import accepted_mail, contexts, received_rows
from tests.dashboard import browser_client, sample_account
from tests.dashboard.browser_client import Browser

SPAM = '{"score": 7.5, "required": 5.0, "is_spam": true}'


def listed(text: str) -> list[str]:
    return re.findall(r'href="/received/(in_[0-9a-f]+)"', text)


async def test_an_empty_page_says_what_a_route_is_and_then_where_mail_goes(
    ctx: context.Context, browser: Browser, reader: Browser
) -> None:
    text = (await browser.get("/received")).text
    assert "A route receives the mail for an address or a whole subdomain" in text
    assert 'href="/received/routes#new-route"' in text
    assert "Developers, admins and owners can create one." in (await reader.get("/received")).text
    assert "Verify a domain first" in (await browser.get("/received/routes")).text
    await domains.add(ctx, browser.account_id, "shop.example", verified=True)
    await routes.add(ctx, browser.account_id, "*@in.shop.example")
    text = (await browser.get("/received")).text
    assert "Mail to <code>*@in.shop.example</code> appears here." in text
    assert 'id="received" data-live' in text


async def test_the_newest_mail_comes_first_and_is_found_by_sender_subject_and_route(
    ctx: context.Context, browser: Browser, clock: contexts.Clock
) -> None:
    route = await received_rows.route(ctx, browser.account_id)
    await received_rows.route(ctx, browser.account_id, "other@in.example.com")
    first = await received_rows.put(ctx, browser.account_id, route_id=route.id)
    clock.pass_seconds(1)
    second = await received_rows.put(
        ctx, browser.account_id, subject=sample_account.HOSTILE, results=received_rows.FAILED, attachment_count=2
    )
    text = (await browser.get("/received")).text
    assert listed(text) == [second.id, first.id]
    assert "<script>alert" not in text
    assert "DMARC passed" in text
    assert "not authenticated" in text
    assert "2 files" in text
    assert listed((await browser.get("/received", search="RECEIPT")).text) == [first.id]
    assert listed((await browser.get("/received", route=route.id, search="")).text) == [first.id]
    nothing = (await browser.get("/received", search="nothing")).text
    assert "No mail matches" in nothing
    assert 'name="route"' in nothing


async def test_the_list_comes_in_parts(ctx: context.Context, browser: Browser, clock: contexts.Clock) -> None:
    ids = []
    for _ in range(50 + 1):
        clock.pass_seconds(1)
        ids.append((await received_rows.put(ctx, browser.account_id)).id)
    first = (await browser.get("/received", search="receipt")).text
    assert listed(first) == ids[:0:-1]
    (following,) = re.findall(r'<nav class="more"[^>]*><a [^>]*href="([^"]*)"', first)
    assert listed((await browser.client.get(following.replace("&amp;", "&"))).text) == [ids[0]]


async def test_a_mail_is_shown_in_a_frame_that_does_nothing_and_its_files_are_downloaded(
    ctx: context.Context, browser: Browser
) -> None:
    route = await received_rows.route(ctx, browser.account_id)
    content = received_rows.MAIL.replace(b"<p>It was", b"<script>alert(1)</script><p>It was")
    mail = await received_rows.put(ctx, browser.account_id, route_id=route.id, content=content)
    text = (await browser.get(f"/received/{mail.id}")).text
    assert "DMARC passed for example.net: aligned by SPF and DKIM." in text
    assert "support+*@in.example.com" in text
    assert ">Checks<" not in text
    assert f'<iframe sandbox src="/received/{mail.id}/preview/html"' in text
    document = await browser.get(f"/received/{mail.id}/preview/html")
    assert document.headers["content-security-policy"] == browser_client.PREVIEW_POLICY
    assert "<script" not in document.text
    assert "Attachments (1)" in text
    assert "It was due on Monday." in (await browser.get(f"/received/{mail.id}", view="text")).text
    files = (await browser.get(f"/received/{mail.id}", view="files")).text
    (path,) = re.findall(rf'href="(/received/{mail.id}/attachments/\d+)"', files)
    file = await browser.get(path)
    assert file.content == b"id,due\r\n1042,monday"
    assert file.headers["content-disposition"].startswith("attachment;")
    raw = await browser.get(f"/received/{mail.id}/raw")
    assert raw.content == content
    assert f"{mail.id}.eml" in raw.headers["content-disposition"]


async def test_a_mail_and_the_message_that_it_answers_lead_to_each_other(
    ctx: context.Context, browser: Browser, analyst: Browser
) -> None:
    await accepted_mail.allow_sending(ctx, browser.account_id)
    message_id = await accepted_mail.accept(ctx, browser.account_id)
    assert "Replies" not in (await browser.get(f"/messages/{message_id}")).text
    mail = await received_rows.put(ctx, browser.account_id, email_id=message_id)
    assert f'<a href="/messages/{message_id}">' in (await browser.get(f"/received/{mail.id}")).text
    assert (
        f'<a href="/received/{mail.id}">Ada &lt;ada@example.net&gt;</a>'
        in (await browser.get(f"/messages/{message_id}")).text
    )
    assert "Replies" not in (await analyst.get(f"/messages/{message_id}")).text


async def test_a_mail_is_deleted(ctx: context.Context, browser: Browser, reader: Browser) -> None:
    mail = await received_rows.put(ctx, browser.account_id)
    assert "/remove" not in (await reader.get(f"/received/{mail.id}")).text
    done = await browser.post(f"/received/{mail.id}/remove")
    assert browser_client.notice_of(done) == "Message deleted."
    assert (await browser.get(f"/received/{mail.id}")).status_code == 404


async def test_a_mail_without_its_content_is_still_listed(ctx: context.Context, browser: Browser) -> None:
    mail = await received_rows.put(ctx, browser.account_id)
    async with ctx.store.transaction() as tx:
        assert await retention.remove_received_bodies(tx, before=ctx.clock() + 1) == 1
    assert listed((await browser.get("/received")).text) == [mail.id]
    text = (await browser.get(f"/received/{mail.id}")).text
    assert "The content of this message was deleted after the retention period." in text
    assert (await browser.get(f"/received/{mail.id}/raw")).status_code == 404


async def test_a_route_is_made_shown_with_its_record_and_removed(
    ctx: context.Context, browser: Browser, reader: Browser
) -> None:
    await domains.add(ctx, browser.account_id, "shop.example", verified=True)
    assert 'value="in.shop.example"' in (await browser.get("/received/routes")).text
    fields = {"preset": "tags", "name": "support", "domain": " @in.shop.example", "action": "store"}
    made = await browser.post("/received/routes", {**fields, "forward_to": "left@over.example"})
    assert browser_client.notice_of(made) == "Mail to support+*@in.shop.example is kept here."
    (route,) = await routes.of_account(ctx, browser.account_id, limit=9)
    assert made.headers["location"] == f"/received/routes?checked={route.id}"
    text = (await browser.get("/received/routes")).text
    assert "<code>support+*@in.shop.example</code>" in text
    assert f"/received/routes/{route.id}/remove" in text
    assert f"/received/routes/{route.id}/remove" not in (await reader.get("/received/routes")).text
    removed = await browser.post(f"/received/routes/{route.id}/remove")
    assert browser_client.notice_of(removed) == "Route removed."
    assert await routes.of_account(ctx, browser.account_id, limit=9) == []


@pytest.mark.parametrize(
    "fields, match, does",
    [
        ({"preset": "all", "action": "drop"}, "*@in.shop.example", "discarded"),
        ({"preset": "one", "name": "a", "action": "store"}, "a@in.shop.example", "kept here"),
        (
            {"preset": "one", "name": "a", "action": "forward", "forward_to": "help@shop.example"},
            "a@in.shop.example",
            "forwarded to help@shop.example",
        ),
    ],
)
async def test_each_preset_and_action_makes_its_route(
    ctx: context.Context, browser: Browser, fields: dict[str, str], match: str, does: str
) -> None:
    await domains.add(ctx, browser.account_id, "shop.example", verified=True)
    made = await browser.post("/received/routes", {"domain": "in.shop.example", **fields})
    assert browser_client.notice_of(made) == f"Mail to {match} is {does}."


async def test_an_address_without_a_name_is_refused(ctx: context.Context, browser: Browser) -> None:
    await domains.add(ctx, browser.account_id, "shop.example", verified=True)
    refused = await browser.post("/received/routes", {"preset": "one", "domain": "in.shop.example", "action": "store"})
    assert refused.status_code == 400
    assert "enter the part before the @" in refused.text


def results(dmarc: dmarc_check.Dmarc, **changed: object) -> authenticate.Results:
    return msgspec.structs.replace(received_rows.PASSED, dmarc=dmarc, **changed)


@pytest.mark.parametrize(
    "found, spam, word, first",
    [
        (received_rows.PASSED, None, "DMARC passed", "DMARC passed for example.net: aligned by SPF and DKIM."),
        (
            received_rows.FAILED,
            None,
            "not authenticated",
            "DMARC failed: not authenticated as example.net. Its policy is quarantine: treat such mail as spam.",
        ),
        (received_rows.PASSED, SPAM, "spam", "DMARC passed for example.net: aligned by SPF and DKIM."),
        (
            results(dmarc_check.Dmarc("none", "example.net")),
            None,
            "not authenticated",
            "example.net has no DMARC record.",
        ),
        (
            results(dmarc_check.Dmarc("temperror", "example.net")),
            None,
            "not authenticated",
            "DMARC could not be checked, because DNS failed.",
        ),
        (
            results(dmarc_check.Dmarc("permerror", "", reason="the From field does not name one domain")),
            None,
            "not authenticated",
            "DMARC could not be checked: the From field does not name one domain.",
        ),
    ],
)
async def test_a_verdict_is_two_words_and_its_reasons_are_sentences(
    ctx: context.Context,
    browser: Browser,
    found: authenticate.Results,
    spam: str | None,
    word: str,
    first: str,
) -> None:
    mail = await received_rows.put(ctx, browser.account_id, results=found, spam=spam)
    assert page.verdict(mail).word == word
    assert page.findings(mail)[0].sentence == first


async def test_every_method_has_its_sentence(ctx: context.Context, browser: Browser) -> None:
    mail = await received_rows.put(ctx, browser.account_id, results=received_rows.FAILED, spam=SPAM)
    assert [finding.sentence for finding in page.findings(mail)][1:] == [
        "SPF returned softfail for example.net.",
        "DKIM failed for example.net: the key does not prove the signature.",
        "ARC passed, sealed by lists.example.org.",
        "SpamAssassin score 7.5; spam from 5.",
    ]
    bare = results(dmarc_check.Dmarc("none", "example.net"), dkim=(), spf=spf_check.Spf("none", "", "helo"))
    mail = await received_rows.put(ctx, browser.account_id, results=bare)
    assert [finding.sentence for finding in page.findings(mail)][1:] == [
        "SPF returned none for an empty name.",
        "No DKIM signature.",
    ]
