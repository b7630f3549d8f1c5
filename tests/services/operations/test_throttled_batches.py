"""Long work leaves the store to others for half of the time."""

import types

import pytest

from postroad import context
from postroad.services import throttled_batches
from postroad.storage.engine import store
from postroad.storage.people import sessions
from tests.storage import samples


@pytest.mark.parametrize("took, rested", [(0.25, 0.25), (30.0, 1.0)])
async def test_a_part_is_committed_and_then_rests_as_long_as_it_took_within_a_bound(
    ctx: context.Context, monkeypatch: pytest.MonkeyPatch, took: float, rested: float
) -> None:
    now = [0.0]
    rests: list[tuple[float, int]] = []

    async def work(tx: store.Transaction) -> str:
        await sessions.insert(tx, samples.session())
        now[0] += took
        return "done"

    async def sleep(seconds: float) -> None:
        rests.append((seconds, await samples.count(ctx.store, "sessions")))

    loop = types.SimpleNamespace(time=lambda: now[0])
    world = types.SimpleNamespace(get_running_loop=lambda: loop, sleep=sleep)
    monkeypatch.setattr(throttled_batches, "asyncio", world)
    assert await throttled_batches.run_batch(ctx, work) == "done"
    assert rests == [(rested, 1)]
