"""The frame of the operator console: who gets in, its menu, and the ways between it and the account's dashboard."""

import pytest

from postroad import context
from postroad.dashboard import application
from postroad.dashboard.framework import site as sites
from postroad.mail import notice_kinds
from postroad.model.people import callers
from postroad.storage.people import accounts
from postroad.web import routing
from tests.dashboard.browser_client import Browser


async def test_the_menus_lead_to_each_other(browser: Browser, operator: Browser) -> None:
    way = '<a href="/operator">Operator console</a>'
    assert way in (await operator.get("/")).text
    assert way not in (await browser.get("/")).text
    page = (await operator.get("/operator")).text
    assert '<a href="/operator" aria-current="page">Health</a>' in page
    assert '<a href="/">Account dashboard</a>' in page
    assert "<title>Health · Operator console · Postroad</title>" in page
    assert 'data-live="/operator/live"' in page
    assert "/operator" in (await operator.get("/find", q="console")).text
    assert "/operator" not in (await browser.get("/find", q="console")).text


async def test_the_console_does_not_say_that_the_operators_own_account_is_suspended(
    ctx: context.Context, operator: Browser
) -> None:
    async with ctx.store.transaction() as tx:
        await accounts.suspend(tx, operator.account_id, reason="x", by=accounts.OPERATOR, now=1)
    assert "This account is suspended" in (await operator.get("/")).text
    assert "This account is suspended" not in (await operator.get("/operator")).text


async def test_notices_lead_to_pages_that_their_readers_may_open(site: sites.Site) -> None:
    table: routing.Table[routing.Route[context.Context]] = routing.Table()
    for route in application.routes(site):
        table.add(route.method, route.path, target=route)
    found = {
        name: table.find("GET", kind.path.partition("#")[0].format_map(Names()).encode())[0].permission
        for name, kind in notice_kinds.KINDS.items()
        if kind.path
    }
    of_operators = {
        name for name, kind in notice_kinds.KINDS.items() if kind.audience is notice_kinds.Audience.OPERATORS
    }
    assert {name for name, permission in found.items() if permission is callers.Permission.OPERATE} == of_operators


class Names(dict[str, str]):
    """Any value of a notice."""

    def __missing__(self, name: str) -> str:
        return "x"


@pytest.mark.parametrize("path", ["/operator/nothing", "/operator/"])
async def test_an_unknown_page_leads_back_to_the_console(operator: Browser, path: str) -> None:
    answer = await operator.get(path)
    assert answer.status_code == 404
    assert '<a href="/operator">Operator console</a>' in answer.text
