"""An installation that was moved from SQLite to PostgreSQL answers everything as before, to those who are logged in.

It has one of everything, and all that can be read over the API is read on both.
"""

import asyncio
from pathlib import Path

import pytest

from postroad import config, context
from postroad.dashboard.framework import site as sites
from postroad.model.people import callers
from postroad.roles import composition
from postroad.services.operations.checks import table
from tests import contexts
from tests.cli import cli_runner
from tests.permissions import installation, surfaces, walks
from tests.permissions.installation import installed
from tests.permissions.test_every_get import EXAMPLES, QUERIES, log_in

__all__ = ["installed"]


@pytest.fixture
def settings(database_url: str) -> config.Settings:
    return installation.settings(database_url)


async def test_all_that_can_be_read_is_the_same_after_a_move(
    ctx: context.Context,
    clock: contexts.Clock,
    installed: installation.Installation,
    site: sites.Site,
    postgres_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The others look at this host, and at its DNS.
    monkeypatch.setattr(table, "CHECKS", {"database": table.CHECKS["database"]})
    owner, operator = await log_in(ctx, installed.owner), await log_in(ctx, installed.operator)

    def who(route: surfaces.Route) -> surfaces.Credential:
        return operator if route.permission is callers.Permission.OPERATE else owner

    async def read(opened: context.Context) -> dict[str, str]:
        (api,) = [one for one in surfaces.build(opened, site) if one.name == surfaces.API]
        found = await walks.answers(api, installed.things, EXAMPLES, who, queries=QUERIES)
        return {path: answer.text.replace(answer.headers["x-request-id"], "") for _, path, answer in found}

    before = await read(ctx)
    await ctx.store.close()
    file = ctx.settings.database.url.removeprefix("sqlite:///")
    moved = await asyncio.to_thread(cli_runner.Installation.at(tmp_path, url=postgres_url).run, "move", file)
    assert moved.exit_code == 0, moved.output
    async with composition.open_context(installation.settings(postgres_url), clock=clock) as opened:
        after = await read(opened)
    await site.operator_state.close()
    assert len(before) > 80
    # It names the engine, and the size of the database.
    assert [path for path in before if after[path] != before[path]] == ["/v1/operator/health"]
