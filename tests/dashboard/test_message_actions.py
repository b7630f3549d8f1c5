"""What can be done on the page of a message: send it again, and suppress a recipient."""

import re

import pytest

from postroad import context, errors
from postroad.model.bounces import disposition
from postroad.services.messages import lookup
from postroad.services.suppressions import suppression_list as suppressions
from postroad.storage.operations import retention
from tests import accepted_mail, contexts
from tests.dashboard import browser_client
from tests.dashboard.browser_client import Browser
from tests.services import claimed_mail


async def ended(ctx: context.Context, browser: Browser, **verdicts: disposition.Verdict) -> str:
    """A message whose recipients at example.net have these results."""
    message_id, claims = await claimed_mail.accepted(
        ctx, browser.account_id, *(f"{name}@example.net" for name in verdicts)
    )
    for claim, verdict in zip(claims, verdicts.values(), strict=True):
        outcome = claimed_mail.outcome(ctx, claim, verdict, recipient_count=len(claims))
        await ctx.outcome_commits.submit([outcome])
    return message_id


def fields(text: str, label: str) -> dict[str, str]:
    """The values of the form with this button, as our scripts send them when the question is answered with yes."""
    form = next(one for one in re.findall(r"<form .*?</form>", text, re.DOTALL) if f">{label}</button>" in one)
    found = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', form))
    return {name: value for name, value in found.items() if name not in {"csrf_token", "question", "verb"}}


async def test_a_failed_message_is_resent_once_and_both_pages_link_each_other(
    ctx: context.Context, browser: Browser
) -> None:
    first = await ended(ctx, browser, bob=disposition.Verdict.BOUNCED)
    text = (await browser.get(f"/messages/{first}")).text
    form = fields(text, "Resend")
    assert form.keys() == {"key", "recipients"}
    answer = await browser.post(f"/messages/{first}/resend", form)
    again = browser_client.location_of(answer).removeprefix("/messages/")
    shown = (await browser.follow(answer)).text
    assert "Resent. This is the new message." in shown
    assert f'Resend of <a href="/messages/{first}">{first}</a>' in shown
    assert "<dt>Source</dt><dd>resend</dd>" in shown
    assert "Accepted for 1 recipient (resend)" in shown
    assert f'Resent as <a href="/messages/{again}">{again}</a>' in (await browser.get(f"/messages/{first}")).text
    # A second click sends nothing, and shows the same message.
    assert browser_client.location_of(await browser.post(f"/messages/{first}/resend", form)) == f"/messages/{again}"
    assert (await lookup.details(ctx, browser.account_id, first)).resent_as == [again]
    assert f"resent {first}" in (await browser.get("/audit-log")).text


async def test_a_message_to_several_is_resent_to_those_that_failed_to_all_or_to_one(
    ctx: context.Context, browser: Browser
) -> None:
    verdicts = {"ada": disposition.Verdict.DELIVERED, "bob": disposition.Verdict.FAILED}
    first = await ended(ctx, browser, **verdicts)
    text = (await browser.get(f"/messages/{first}")).text
    assert fields(text, "Resend to 1 failed")["recipients"] == "failed"
    assert fields(text, "Resend to all")["recipients"] == "all"
    ada, _ = (await lookup.find(ctx, browser.account_id, first))[1]
    assert f'name="recipient_id" value="{ada.id}"' in text
    answer = await browser.post(f"/messages/{first}/resend", {"key": "x", "recipient_id": ada.id})
    (reached,) = (await lookup.find(ctx, browser.account_id, browser_client.location_of(answer)[10:]))[1]
    assert reached.email == "ada@example.net"


async def test_nothing_is_resent_without_content_or_to_whom_it_is_still_on_its_way(
    ctx: context.Context, browser: Browser, reader: Browser
) -> None:
    await accepted_mail.allow_sending(ctx, browser.account_id)
    waiting = await accepted_mail.accept(ctx, browser.account_id, to=("eve@example.net",))
    assert "/resend" not in (await browser.get(f"/messages/{waiting}")).text
    refused = await browser.post(f"/messages/{waiting}/resend", {"key": "x", "recipients": "all"})
    assert (refused.status_code, "still being delivered" in refused.text) == (409, True)
    (claim,) = await claimed_mail.claim_all(ctx, claimed_mail.WORKER)
    await ctx.outcome_commits.submit([claimed_mail.outcome(ctx, claim, disposition.Verdict.DELIVERED)])
    assert "/resend" in (await browser.get(f"/messages/{waiting}")).text
    assert "/resend" not in (await reader.get(f"/messages/{waiting}")).text
    async with ctx.store.transaction() as tx:
        await retention.remove_bodies(tx, ended_before=ctx.clock() + contexts.SECOND)
    assert "/resend" not in (await browser.get(f"/messages/{waiting}")).text
    refused = await browser.post(f"/messages/{waiting}/resend", {"key": "x", "recipients": "all"})
    assert (refused.status_code, "no longer retained" in refused.text) == (409, True)


async def test_a_recipient_is_suppressed_from_its_message(ctx: context.Context, browser: Browser) -> None:
    first = await ended(ctx, browser, bob=disposition.Verdict.BOUNCED)
    answer = await browser.post(
        f"/messages/{first}/suppress", fields((await browser.get(f"/messages/{first}")).text, "Suppress")
    )
    shown = (await browser.follow(answer)).text
    assert "bob@example.net is suppressed." in shown
    assert "/resend" not in shown
    assert f"/messages/{first}/suppress" not in shown
    assert (await suppressions.find(ctx, browser.account_id, "bob@example.net")).source == "account"
    unknown = await browser.post(f"/messages/{first}/suppress", {"recipient_id": "rcp_" + "0" * 28})
    assert unknown.status_code == 404


async def test_without_scripts_the_question_of_a_form_is_a_page_that_keeps_its_fields(
    ctx: context.Context, browser: Browser
) -> None:
    first = await ended(ctx, browser, bob=disposition.Verdict.BOUNCED)
    form = fields((await browser.get(f"/messages/{first}")).text, "Suppress")
    question = {"question": "Suppress bob@example.net? <b>You</b> can undo it.", "verb": "Suppress"}
    asked = await browser.post(f"/messages/{first}/suppress", form | question)
    assert asked.status_code == 200
    assert "<h1>Suppress bob@example.net?</h1>" in asked.text
    assert "&lt;b&gt;You&lt;/b&gt; can undo it." in asked.text
    # Nothing was changed yet; the page has the whole form once more, without the question.
    with pytest.raises(errors.NotFound):
        await suppressions.find(ctx, browser.account_id, "bob@example.net")
    main = asked.text.partition("<main")[2].partition("</main>")[0]
    again = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', main))
    assert again.keys() == {"csrf_token"} | form.keys()
    await browser.post(f"/messages/{first}/suppress", {name: again[name] for name in form})
    assert (await suppressions.find(ctx, browser.account_id, "bob@example.net")).source == "account"
