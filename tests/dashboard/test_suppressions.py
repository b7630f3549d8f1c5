"""The page of suppressed addresses."""

import pytest

from postroad import context
from postroad.dashboard.mail import suppressions as page
from postroad.services.suppressions import suppression_list as suppressions
from postroad.storage.mail import suppressions as stored
from tests.dashboard import browser_client
from tests.dashboard.browser_client import Browser

MESSAGE_ID = "em_" + "1" * 28


async def put(ctx: context.Context, account_id: str, email: str, source: stored.Source, **more: object) -> None:
    """An address as the engine leaves it."""
    members: dict[str, object] = {"reason": "550 no such user", "smtp_code": None, "message_id": None} | more
    row = stored.Suppression(account_id, email, source, created_at=ctx.clock(), **members)  # type: ignore[arg-type]
    async with ctx.store.transaction() as tx:
        await stored.add(tx, [row])


async def on_the_list(ctx: context.Context, browser: Browser) -> list[str]:
    return [row.email_key for row in await suppressions.page(ctx, browser.account_id, after="", limit=100)]


async def test_an_empty_list_teaches(browser: Browser, reader: Browser) -> None:
    text = (await browser.get("/suppressions")).text
    assert "No suppressed addresses" in text
    assert 'action="/suppressions/import"' in text
    assert 'method="post" action="/suppressions' not in (await reader.get("/suppressions")).text


async def test_the_list_says_why_in_plain_words(ctx: context.Context, browser: Browser) -> None:
    for source in stored.Source:
        words = page.SOURCES[source]
        more = {"reason": "5.1.1 <b>unknown</b>", "smtp_code": 550, "message_id": MESSAGE_ID}
        await put(ctx, browser.account_id, f"{source}@example.net", source, **more)
        text = (await browser.get("/suppressions", email=f"{source}@example.net")).text
        assert f"<strong>{words}</strong>" in text
        assert "550 5.1.1 &lt;b&gt;unknown&lt;/b&gt;" in text
        assert f'href="/messages/{MESSAGE_ID}"' in text
    assert set(page.SOURCES) == {*stored.Source, *stored.ListSource}


async def test_an_address_is_found_however_it_is_written(ctx: context.Context, browser: Browser) -> None:
    await put(ctx, browser.account_id, "ada@example.net", stored.Source.BOUNCE)
    assert "Remove ada@example.net" in (await browser.get("/suppressions", email=" ADA@Example.NET ")).text
    for other in ("bob@example.net", "no address", "<script>alert(1)</script>"):
        text = (await browser.get("/suppressions", email=other)).text
        assert "is not suppressed" in text
        assert "<script>alert" not in text


async def test_the_list_is_narrowed(ctx: context.Context, browser: Browser) -> None:
    await put(ctx, browser.account_id, "a+&b@example.net", stored.Source.BOUNCE)
    await put(ctx, browser.account_id, "zoe@example.net", stored.Source.COMPLAINT)
    text = (await browser.get("/suppressions", source="bounce")).text
    assert "a+&amp;b@example.net" in text
    assert "zoe@example.net" not in text
    assert "No more addresses." in (await browser.get("/suppressions", after="zzz")).text
    assert (await browser.get("/suppressions", source="magic")).status_code == 400


async def test_the_form_of_the_page_may_be_sent_empty(ctx: context.Context, browser: Browser) -> None:
    await put(ctx, browser.account_id, "ada@example.net", stored.Source.BOUNCE)
    assert "ada@example.net" in (await browser.get("/suppressions?email=&source=")).text


async def test_an_address_is_put_onto_the_list(ctx: context.Context, browser: Browser) -> None:
    done = await browser.post("/suppressions", {"email": "Ada@Example.net", "reason": "asked to be left alone"})
    assert browser_client.notice_of(done) == "ada@example.net is suppressed."
    assert "asked to be left alone" in (await browser.follow(done)).text
    found = await suppressions.find(ctx, browser.account_id, "ada@example.net")
    assert (found.source, found.reason) == ("account", "asked to be left alone")
    again = await browser.post("/suppressions", {"email": "ada@example.net", "reason": "another"})
    assert (again.status_code, "is already suppressed" in again.text) == (409, True)
    assert (await suppressions.find(ctx, browser.account_id, "ada@example.net")).reason == "asked to be left alone"


@pytest.mark.parametrize(
    "fields",
    [{"email": ""}, {"email": "ada@example.net", "reason": "x" * 201}],
    ids=str,
)
async def test_a_wrong_address_is_refused_with_a_sentence(
    ctx: context.Context, browser: Browser, fields: dict[str, str]
) -> None:
    refused = await browser.post("/suppressions", fields)
    assert refused.status_code == 400
    assert "reason:" in refused.text if "reason" in fields else "email:" in refused.text
    assert await on_the_list(ctx, browser) == []


async def test_an_address_is_taken_off(ctx: context.Context, browser: Browser) -> None:
    await put(ctx, browser.account_id, "ada@example.net", stored.Source.BOUNCE)
    done = await browser.post("/suppressions/remove", {"email": "ada@example.net"})
    assert browser_client.notice_of(done) == "ada@example.net is no longer suppressed."
    assert await on_the_list(ctx, browser) == []
    assert (await browser.post("/suppressions/remove", {"email": "ada@example.net"})).status_code == 404


async def test_whoever_complained_is_taken_off_when_it_is_confirmed(ctx: context.Context, browser: Browser) -> None:
    await put(ctx, browser.account_id, "ada@example.net", stored.Source.COMPLAINT)
    page = (await browser.get("/suppressions")).text
    assert 'name="confirmed"' in page
    assert "Remove</button>" in page
    refused = await browser.post("/suppressions/remove", {"email": "ada@example.net"})
    assert (refused.status_code, "confirm that they asked to receive mail again" in refused.text) == (409, True)
    assert await on_the_list(ctx, browser) == ["ada@example.net"]
    done = await browser.post("/suppressions/remove", {"email": "ada@example.net", "confirmed": "yes"})
    assert browser_client.notice_of(done) == "ada@example.net is no longer suppressed."
    assert await on_the_list(ctx, browser) == []


async def test_a_file_is_imported_and_counted(ctx: context.Context, browser: Browser) -> None:
    await put(ctx, browser.account_id, "ada@example.net", stored.Source.BOUNCE)
    content = "email,reason\r\nada@example.net,x\r\nbob@example.net,left\r\neve@example.net,\r\n"
    done = await browser.post("/suppressions/import", {"content": content})
    assert browser_client.notice_of(done) == "2 addresses imported. 1 were already suppressed."
    assert await on_the_list(ctx, browser) == ["ada@example.net", "bob@example.net", "eve@example.net"]
    assert (await suppressions.find(ctx, browser.account_id, "bob@example.net")).reason == "left"


async def test_a_file_with_a_mistake_changes_nothing(ctx: context.Context, browser: Browser) -> None:
    for content in ("bob@example.net\nnobody\n", "a,b\n1,2\n", '"', "", "email\n"):
        refused = await browser.post("/suppressions/import", {"content": content})
        assert refused.status_code == (303 if content == "email\n" else 400), content
    assert "Line 2: " in (await browser.post("/suppressions/import", {"content": "bob@example.net\nnobody"})).text
    assert await on_the_list(ctx, browser) == []


async def test_a_file_that_is_too_long_is_refused(ctx: context.Context, browser: Browser) -> None:
    content = "bob@example.net\n" * ((8 * 1024 * 1024) // 16)
    refused = await browser.post("/suppressions/import", {"content": content})
    assert refused.status_code == 413
    assert await on_the_list(ctx, browser) == []


async def test_an_export_is_a_file_that_no_spreadsheet_runs(ctx: context.Context, reader: Browser) -> None:
    await put(ctx, reader.account_id, "=cmd@example.net", stored.Source.BOUNCE, reason="=1+1")
    file = await reader.get("/suppressions/export")
    assert file.headers["content-type"] == "text/csv; charset=utf-8"
    assert file.headers["content-disposition"] == 'attachment; filename="suppressions.csv"'
    assert "'=cmd@example.net,bounce,'=1+1" in file.text
