"""Lists that are longer than a page."""

from collections.abc import Awaitable, Callable

import pytest

from postroad import context
from postroad.dashboard.framework import lists
from postroad.services.domains import domain_registry as domains
from postroad.services.people import credentials
from tests import contexts
from tests.dashboard import test_api_keys as keys
from tests.dashboard.browser_client import Browser


async def create_credential(ctx: context.Context, account_id: str, name: str) -> str:
    return (await credentials.create(ctx, account_id, name))[0].id


async def create_key(ctx: context.Context, account_id: str, name: str) -> str:
    return (await keys.make(ctx, account_id, name)).id


async def add_domain(ctx: context.Context, account_id: str, name: str) -> str:
    return (await domains.add(ctx, account_id, name, verified=True)).id


@pytest.mark.parametrize(
    "path, create", [("/keys", create_key), ("/credentials", create_credential), ("/domains", add_domain)]
)
async def test_a_long_list_has_parts(
    ctx: context.Context,
    clock: contexts.Clock,
    browser: Browser,
    monkeypatch: pytest.MonkeyPatch,
    path: str,
    create: Callable[[context.Context, str, str], Awaitable[str]],
) -> None:
    monkeypatch.setattr(lists, "ROWS", 2)
    ids = []
    for number in range(3):
        clock.pass_seconds(1)
        ids.append(await create(ctx, browser.account_id, f"shop-{number}.example"))
    first = (await browser.get(path)).text
    assert f"{path}?after={ids[1]}" in first
    assert "shop-2.example" not in first
    second = (await browser.get(path, after=ids[1])).text
    assert "shop-2.example" in second
    assert "after=" not in second
    assert (await browser.get(path, after="nonsense")).status_code == 400
