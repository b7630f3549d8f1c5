"""The log of attempts: read as it was written, in order, and of the deliveries that were asked for."""

from postroad.storage.engine.store import Store
from postroad.storage.mail import webhooks
from tests.storage import samples
from tests.storage.webhook_samples import NOW, add, attempt, delivery

ONE, TWO = delivery(1), delivery(2)


async def of(store: Store, *delivery_ids: str, account_id: str = "acc_1", webhook_id: str = "whk_1") -> list[object]:
    async with store.scanning() as tx:
        found = await webhooks.attempts_of_deliveries(tx, account_id, webhook_id, delivery_ids)
    return list(found)


async def test_attempts_come_back_as_written_in_the_order_in_which_they_were_made(store: Store) -> None:
    failed = attempt(ONE, 1, status_code=None, response_body=None, error="timeout: no answer within 5 seconds")
    odd = attempt(ONE, 2, status_code=302, response_body="", error="redirect_not_followed: …", duration=0)
    good = attempt(ONE, 3, status_code=200, response_body="ok \x01 ✓")
    await add(store, good, failed, attempt(TWO), odd)
    assert await of(store, ONE.id) == [failed, odd, good]
    assert await of(store, TWO.id, ONE.id) == [failed, odd, good, attempt(TWO)]
    assert await of(store) == []


async def test_attempts_of_other_deliveries_endpoints_and_accounts_are_not_seen(store: Store) -> None:
    elsewhere = [delivery(1, "whk_2"), delivery(1, "whk_1", "acc_2")]
    await add(store, attempt(ONE), *(attempt(other, error="theirs") for other in elsewhere))
    assert await of(store, ONE.id, "whd_9") == [attempt(ONE)]
    assert await of(store, ONE.id, webhook_id="whk_9") == []
    assert await of(store, ONE.id, account_id="acc_2") == [attempt(elsewhere[1], error="theirs")]


async def test_the_same_attempt_twice_is_one_and_the_first_word_stands(store: Store) -> None:
    await add(store, attempt(ONE, error="interrupted: the worker vanished"))
    await add(store, attempt(ONE, status_code=200), attempt(ONE, 2))
    assert await of(store, ONE.id) == [attempt(ONE, error="interrupted: the worker vanished"), attempt(ONE, 2)]


async def test_attempts_go_with_their_delivery_and_the_neighbours_stay(store: Store) -> None:
    neighbours = [TWO, delivery(1, "whk_2"), delivery(1, "whk_1", "acc_2")]
    await add(store, attempt(ONE, 1), attempt(ONE, 2), *(attempt(other) for other in neighbours))
    async with store.transaction() as tx:
        await webhooks.remove_attempts(tx, [])
        await webhooks.remove_attempts(tx, [ONE.key, ("acc_1", "whk_1", "whd_9")])
    assert await of(store, ONE.id) == []
    assert await samples.count(store, "webhook_attempts") == len(neighbours)
    async with store.transaction() as tx:
        await webhooks.remove_attempts(tx, [other.key for other in neighbours])
    assert await samples.count(store, "webhook_attempts") == 0


async def test_times_of_a_far_future_fit(store: Store) -> None:
    far = attempt(ONE, started_at=NOW * 4, duration=NOW)
    await add(store, far)
    assert await of(store, ONE.id) == [far]
