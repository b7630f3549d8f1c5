"""`/find`: everything of the account that matches what is typed, by kind, and nothing of others."""

import re
import string

from postroad import context
from postroad.dashboard import application
from postroad.dashboard.framework import site as sites
from postroad.dashboard.mail import find
from postroad.model.people import callers
from postroad.services.domains import domain_registry as domains
from postroad.services.messages import saved_views
from postroad.services.suppressions import suppression_list as suppressions
from postroad.services.templates import templates
from postroad.storage.mail import suppressions as stored_suppressions
from tests import accepted_mail
from tests.dashboard.browser_client import Browser

LINK = re.compile(r'<a href="([^"]+)">([^<]*)')
GROUP = re.compile(r'<h2 id="group-\d+">([^<]+)</h2>')


async def found(browser: Browser, text: str) -> dict[str, list[str]]:
    """The paths of the results by the title of their group."""
    page = (await browser.get("/find", q=text)).text.partition('id="found"')[2].partition("</div>")[0]
    _, *parts = GROUP.split(page)
    return {
        title: [path for path, _ in LINK.findall(part)] for title, part in zip(parts[::2], parts[1::2], strict=True)
    }


PLACES = {
    "audit": "/audit-log",
    "dkim": "/domains",
    "API ke": "/keys",
    "403": "/requests",
    "live": "/tail",
    "time z": "/profile#time-zone",
}
# What is no search, or not yet.
STRANGE = ('"', "stauts:failed", "\0\u202e", "-", "x" * 600, "to:*", "%", "<script>", "a@", "@example.org")
# Asked for by pages, not for those who are logged in, or hidden until there is a use for it.
NO_PLACES = {"/approvals", "/bulk", "/confirm", "/find", "/login", "/login/second-factor", "/login/sso", "/live"}
FILES = (".csv", "/export")


async def test_pages_and_settings_are_found_by_the_beginnings_of_words(browser: Browser) -> None:
    for text, path in PLACES.items():
        results = await found(browser, text)
        assert path in [*results.get("Pages", []), *results.get("Settings", [])], text


async def everything(browser: Browser) -> set[str]:
    """The pages and settings of the role, which are found by the first letters of their names."""
    results = [await found(browser, letter) for letter in string.ascii_lowercase]
    return {path for result in results for kind in ("Pages", "Settings") for path in result.get(kind, [])}


async def test_without_a_text_only_what_can_be_done_is_listed(browser: Browser, reader: Browser) -> None:
    every = await found(browser, "")
    assert set(every) == {"Actions"}
    assert {"/keys#new-key", "/template/new"} <= set(every["Actions"])
    # Those who can do nothing get the pages.
    seen = await found(reader, "")
    assert set(seen) == {"Pages"}
    assert {"/", "/messages"} <= set(seen["Pages"])
    assert await everything(browser) - await everything(reader) == {"/team/sso"}


async def test_every_page_that_is_not_of_a_thing_is_found(browser: Browser, site: sites.Site) -> None:
    actions = (await found(browser, ""))["Actions"]
    known = {path.partition("#")[0] for path in [*await everything(browser), *actions]}
    routes = [route for route in application.routes(site) if route.permission is not callers.Permission.OPERATE]
    paths = {route.path for route in routes if route.method == "GET" and "{" not in route.path}
    assert {path for path in paths if not path.startswith("/assets/") and not path.endswith(FILES)} - NO_PLACES == known


async def test_what_an_account_has_is_found_and_others_find_none_of_it(
    ctx: context.Context, browser: Browser, reader: Browser, stranger: Browser
) -> None:
    await accepted_mail.allow_sending(ctx, browser.account_id, domain="zebra.example")
    await accepted_mail.allow_sending(ctx, stranger.account_id, domain="other.example")
    message_id = await accepted_mail.accept(
        ctx, browser.account_id, sender="shop@zebra.example", to=("Zoe@Example.net",), subject="Zebra <b> crossing"
    )
    await templates.put(ctx, browser.account_id, "zebra-welcome", subject="Hello", text="x", html=None)
    await saved_views.save(ctx, browser.account_id, name="Zebra mail", search="tag:zebra")
    source = stored_suppressions.Source.ACCOUNT
    await suppressions.add(ctx, browser.account_id, "zed@example.net", reason="x", source=source)
    (domain,) = await domains.of_account(ctx, browser.account_id)
    message = f"/messages/{message_id}"
    for who in (browser, reader):
        assert await found(who, "zebra") == {
            "Messages": [message, "/messages?search=zebra"],
            "Views": ["/messages?search=tag%3Azebra"],
            "Domains": [f"/domains/{domain.id}"],
            "Templates": ["/templates/zebra-welcome"],
        }
    assert (await found(browser, message_id))["Messages"][0] == message
    assert (await found(browser, message_id[:12]))["Messages"][0] == message
    assert (await found(browser, message_id[3:12]))["Messages"][0] == message
    addresses = ["/recipients/zoe%40example.net", "/recipients/zed%40example.net"]
    assert (await found(browser, "z"))["Recipients"] == addresses
    assert next(iter((await found(browser, "ZOE@example.net")).items())) == ("Recipients", addresses[:1])
    assert (await found(browser, "zed@example.net"))["Recipients"] == addresses[1:]
    # A part of an address that could be a domain.
    await accepted_mail.accept(
        ctx, browser.account_id, sender="shop@zebra.example", to=("quagga.lee@example.net",), subject="Hello"
    )
    assert list((await found(browser, "quagga.lee")).items()) == [
        ("Recipients", ["/recipients/quagga.lee%40example.net"]),
        ("Messages", ["/messages?search=to%3Aquagga.lee%2A"]),
    ]
    assert next(iter(await found(browser, "bounce"))) == "Pages"
    assert (await found(browser, "bounce"))["Pages"] == ["/failures"]
    assert (await found(browser, "example.net"))["Messages"] == ["/messages?search=to%3A%40example.net"]
    for text in ("zebra", message_id, message_id[3:12], "z", "zoe@example.net", "zed@example.net"):
        results = await found(stranger, text)
        assert not {"Views", "Recipients", "Domains", "Templates"} & set(results)
        assert all(path.startswith("/messages?") for path in results["Messages"])


async def test_a_page_shows_a_few_of_each_kind(ctx: context.Context, browser: Browser) -> None:
    await accepted_mail.allow_sending(ctx, browser.account_id)
    for number in range(find.MAX_RESULTS + 2):
        await accepted_mail.accept(ctx, browser.account_id, to=(f"ann{number}@example.net",), subject="Invoice")
    assert len((await found(browser, "invoice"))["Messages"]) == find.MAX_RESULTS + 1
    assert len((await found(browser, "ann"))["Recipients"]) == find.MAX_RESULTS


async def test_what_is_no_search_finds_nothing_and_harms_nothing(browser: Browser) -> None:
    for text in STRANGE:
        answer = await browser.get("/find", q=text)
        assert answer.status_code == 200, text
        assert "<script>" not in answer.text
    assert "Nothing matches." in (await browser.get("/find", q="stauts:failed")).text
