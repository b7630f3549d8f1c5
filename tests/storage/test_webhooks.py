"""Endpoints and their secrets: several for each account, signed with the secrets that have not expired."""

import msgspec
import pytest

from postroad.storage.engine.store import ConstraintViolated, Store
from postroad.storage.mail import webhooks
from tests.storage import samples
from tests.storage.webhook_samples import NOW, SECOND, add, delivery, secret, webhook

LATER = NOW + SECOND


async def first_of(store: Store, account_id: str = "acc_1") -> webhooks.Webhook | None:
    async with store.reading() as tx:
        return await webhooks.first_of(tx, account_id)


async def remove(store: Store, webhook_id: str = "whk_1", *, now: int = LATER) -> None:
    async with store.transaction() as tx:
        await webhooks.remove(tx, webhook_id, now=now)


async def signing(store: Store, *webhook_ids: str, now: int = NOW) -> list[tuple[str, int]]:
    """Endpoint and version of the secrets that sign."""
    async with store.reading() as tx:
        return [(one.webhook_id, one.version) for one in await webhooks.secrets(tx, webhook_ids, now=now)]


async def removed(store: Store, *, most: int = 10) -> list[str]:
    async with store.reading() as tx:
        return [one.id for one in await webhooks.removed(tx, limit=most)]


async def test_an_endpoint_is_read_as_it_was_written_and_only_by_its_account(store: Store) -> None:
    mine = webhook(url="https://hooks.example.org/ü?a=b", enabled=0)
    await add(store, mine, webhook("whk_2", "acc_2"))
    assert await first_of(store) == mine
    assert await first_of(store, "acc_2") == webhook("whk_2", "acc_2")
    assert await first_of(store, "acc_3") is None


async def test_an_account_has_one_first_endpoint_at_a_time(store: Store) -> None:
    await add(store, webhook())
    with pytest.raises(ConstraintViolated):
        await add(store, webhook("whk_2"))
    await remove(store)
    await add(store, webhook("whk_2"))
    await remove(store, "whk_2")
    await add(store, webhook("whk_3"))
    assert await first_of(store) == webhook("whk_3")


async def test_those_of_accounts_that_are_enabled_are_found_by_account(store: Store) -> None:
    everybody = {f"acc_{number}": webhook(f"whk_{number}", f"acc_{number}") for number in range(1, 5)}
    everybody["acc_2"] = msgspec.structs.replace(everybody["acc_2"], enabled=0)
    await add(store, *everybody.values())
    await remove(store, "whk_3")
    async with store.reading() as tx:
        found = await webhooks.enabled_of(tx, ["acc_4", "acc_1", "acc_2", "acc_3", "acc_9", "acc_1"])
        assert await webhooks.enabled_of(tx, []) == {}
    assert found == {"acc_1": [everybody["acc_1"]], "acc_4": [everybody["acc_4"]]}


async def test_an_account_has_more_endpoints_beside_the_first(store: Store) -> None:
    second = webhook(
        "whk_0",
        is_first=0,
        version=2,
        tags="a tag\nother",
        sender_domains="example.com",
        mode="test",
        standard_signature=1,
        description="Billing",
        failing_since=NOW,
        disabled_reason="down",
    )
    third = webhook("whk_3", is_first=0)
    await add(store, webhook(), third, second, webhook("whk_4", "acc_2", is_first=0))
    async with store.reading() as tx:
        assert await webhooks.of_account(tx, "acc_1") == [webhook(), second, third]
        assert await webhooks.count(tx, "acc_1") == 3
        enabled = (await webhooks.enabled_of(tx, ["acc_1"]))["acc_1"]
        assert sorted(one.id for one in enabled) == ["whk_0", "whk_1", "whk_3"]
        assert await webhooks.enabled(tx, ["whk_0", "whk_1"]) == {"whk_0": second, "whk_1": webhook()}
        assert await webhooks.by_id(tx, "acc_1", "whk_0") == second
        assert await webhooks.by_id(tx, "acc_2", "whk_0") is None
    assert await first_of(store, "acc_2") is None


async def test_one_of_several_endpoints_is_changed_and_removed_without_the_others(store: Store) -> None:
    second = webhook("whk_2", is_first=0)
    await add(store, webhook(), second, secret(created_at=NOW), secret(1, "whk_2", created_at=NOW))
    changed = msgspec.structs.replace(second, url="https://two.example.org/", enabled=0, failing_since=7, mode="test")
    async with store.transaction() as tx:
        await webhooks.update(tx, changed)
        assert await webhooks.of_account(tx, "acc_1") == [webhook(), changed]
    assert await signing(store, "whk_2") == [("whk_2", 1)]
    await remove(store, "whk_2")
    assert await removed(store) == ["whk_2"]
    assert await signing(store, "whk_1", "whk_2") == [("whk_1", 1)]
    async with store.transaction() as tx:
        await webhooks.forget(tx, "whk_2")
        assert await webhooks.of_account(tx, "acc_1") == [webhook()]
    assert await samples.count(store, "webhooks") == 1


async def test_every_endpoint_has_its_own_pings(store: Store) -> None:
    first, second = webhook(), webhook("whk_2", is_first=0)
    await add(store, first, second, webhook("whk_3", is_first=0))
    async with store.transaction() as tx:
        for one in (first, second):
            assert await webhooks.mark_pinged(tx, one, now=NOW, not_since=NOW - SECOND)
            assert not await webhooks.mark_pinged(tx, one, now=NOW + 1, not_since=NOW - SECOND)
            assert await webhooks.pinged_at(tx, one) == NOW
        assert await webhooks.pinged_at(tx, webhook("whk_3", is_first=0)) is None
        assert await webhooks.mark_pinged(tx, second, now=NOW + SECOND, not_since=NOW)
        # The clock was set back.
        assert await webhooks.mark_pinged(tx, second, now=NOW, not_since=NOW - SECOND)


async def test_those_that_are_enabled_are_found_by_id(store: Store) -> None:
    await add(store, webhook(), webhook("whk_2", "acc_2", enabled=0), webhook("whk_3", "acc_3"))
    await remove(store, "whk_3")
    async with store.reading() as tx:
        found = await webhooks.enabled(tx, ["whk_3", "whk_2", "whk_1", "whk_9", "whk_1"])
        assert await webhooks.enabled(tx, []) == {}
    assert found == {"whk_1": webhook()}


async def test_a_change_is_of_url_events_and_flag_and_of_one_endpoint(store: Store) -> None:
    await add(store, webhook(), webhook("whk_2", "acc_2"))
    changed = webhook(url="https://new.example.org/", events="email.failed", enabled=0, updated_at=LATER)
    beside = msgspec.structs.replace(changed, secret_hint="other", created_at=5)
    async with store.transaction() as tx:
        await webhooks.update(tx, beside)
    assert await first_of(store) == changed
    assert await first_of(store, "acc_2") == webhook("whk_2", "acc_2")


async def test_a_ping_is_noted_unless_there_was_one_a_moment_ago(store: Store) -> None:
    await add(store, webhook(), webhook("whk_2", "acc_2"))
    noted = []
    for seconds in (0, 14, 15, 29, 30):
        now = NOW + seconds * SECOND
        async with store.transaction() as tx:
            noted.append(await webhooks.mark_pinged(tx, webhook(), now=now, not_since=now - 15 * SECOND))
    assert noted == [True, False, True, False, True]
    async with store.transaction() as tx:
        assert await webhooks.pinged_at(tx, webhook()) == NOW + 30 * SECOND
        assert await webhooks.pinged_at(tx, webhook("whk_2", "acc_2")) is None


async def test_the_wait_for_the_next_ping_outlives_the_endpoints_of_an_account_that_are_removed(store: Store) -> None:
    await add(store, webhook(), webhook("whk_2", is_first=0), webhook("whk_9", is_first=0))
    async with store.transaction() as tx:
        for webhook_id, pinged_at in (("whk_1", NOW), ("whk_2", NOW - SECOND), ("whk_9", NOW + SECOND)):
            pinged = webhook(webhook_id, is_first=int(webhook_id == "whk_1"))
            await webhooks.mark_pinged(tx, pinged, now=pinged_at, not_since=NOW)
    await remove(store, "whk_1")
    await remove(store, "whk_2")
    await add(store, webhook("whk_3"), webhook("whk_4", is_first=0), webhook("whk_5", "acc_2"))
    async with store.transaction() as tx:
        assert await webhooks.pinged_at(tx, webhook("whk_3")) == NOW
        assert await webhooks.pinged_at(tx, webhook("whk_4", is_first=0)) == NOW
        assert await webhooks.pinged_at(tx, webhook("whk_5", "acc_2")) is None


async def test_the_newest_secret_comes_first_and_shows_its_hint(store: Store) -> None:
    await add(store, webhook(), webhook("whk_2", "acc_2"), secret(1, "whk_2", "acc_2"))
    async with store.transaction() as tx:
        await webhooks.add_secret(tx, secret(1), hint="whsec_…1111")
        await webhooks.retire_secret(tx, "whk_1", expires_at=LATER)
        await webhooks.add_secret(tx, secret(2, secret=b"new", created_at=LATER), hint="whsec_…2222")
    async with store.reading() as tx:
        found = await webhooks.secrets(tx, ["whk_1"], now=NOW)
    assert found == [secret(2, secret=b"new", created_at=LATER), secret(1, expires_at=LATER)]
    assert await first_of(store) == webhook(secret_hint="whsec_…2222", updated_at=LATER)


async def test_a_secret_signs_until_its_end_and_each_endpoint_has_its_own(store: Store) -> None:
    await add(store, webhook(), webhook("whk_2", "acc_2"), secret(1), secret(1, "whk_2", "acc_2"))
    async with store.transaction() as tx:
        await webhooks.retire_secret(tx, "whk_1", expires_at=LATER)
        await webhooks.add_secret(tx, secret(2), hint="")
        # The old end stays as it is.
        await webhooks.retire_secret(tx, "whk_1", expires_at=LATER + SECOND)
        await webhooks.add_secret(tx, secret(3), hint="")
    assert await signing(store, "whk_1", now=LATER - 1) == [("whk_1", 3), ("whk_1", 2), ("whk_1", 1)]
    assert await signing(store, "whk_1", now=LATER) == [("whk_1", 3), ("whk_1", 2)]
    assert await signing(store, "whk_1", now=LATER + SECOND) == [("whk_1", 3)]
    both = await signing(store, "whk_2", "whk_1", "whk_9", now=LATER + SECOND)
    assert sorted(both) == [("whk_1", 3), ("whk_2", 1)]
    assert await signing(store) == []


async def test_secrets_that_are_over_are_swept_and_the_others_stay(store: Store) -> None:
    await add(
        store,
        webhook(),
        webhook("whk_2", "acc_2"),
        secret(1, expires_at=NOW),
        secret(2, expires_at=NOW + 1),
        secret(3),
        secret(1, "whk_2", "acc_2", expires_at=NOW - 1),
    )
    async with store.transaction() as tx:
        assert await webhooks.sweep_secrets(tx, now=NOW) == 2
        assert await webhooks.sweep_secrets(tx, now=NOW) == 0
    assert await signing(store, "whk_1", "whk_2", now=0) == [("whk_1", 3), ("whk_1", 2)]


async def test_secrets_of_one_endpoint_are_deleted_alone(store: Store) -> None:
    await add(store, webhook(), webhook("whk_2", "acc_2"), secret(1), secret(2), secret(1, "whk_2", "acc_2"))
    async with store.transaction() as tx:
        await webhooks.remove_secrets(tx, "whk_1")
    assert await signing(store, "whk_1", "whk_2") == [("whk_2", 1)]


async def test_one_that_is_removed_is_seen_by_nobody_but_the_sweep_and_its_secrets_are_gone(store: Store) -> None:
    await add(store, webhook(), secret(1), webhook("whk_2", "acc_2"), secret(1, "whk_2", "acc_2"))
    await remove(store)
    assert await first_of(store) is None
    assert await signing(store, "whk_1", "whk_2") == [("whk_2", 1)]
    assert await samples.count(store, "webhook_secrets") == 1
    assert await removed(store) == ["whk_1"]
    async with store.reading() as tx:
        assert await webhooks.enabled(tx, ["whk_1"]) == {}


async def test_the_longest_gone_are_named_first_and_so_many(store: Store) -> None:
    for number, gone_at in ((1, LATER + 2), (2, LATER), (3, LATER + 1)):
        await add(store, webhook(f"whk_{number}"))
        await remove(store, f"whk_{number}", now=gone_at)
    await add(store, webhook("whk_4"))
    assert await removed(store) == ["whk_2", "whk_3", "whk_1"]
    assert await removed(store, most=2) == ["whk_2", "whk_3"]


async def test_only_one_that_is_removed_and_has_no_log_left_is_deleted(store: Store) -> None:
    await add(store, webhook(), webhook("whk_2", "acc_2"), webhook("whk_3", "acc_3"), delivery(1, "whk_2", "acc_2"))
    await remove(store, "whk_2")
    await remove(store, "whk_3")
    async with store.transaction() as tx:
        for webhook_id in ("whk_1", "whk_2", "whk_3"):
            await webhooks.forget(tx, webhook_id)
    assert await first_of(store) == webhook()
    assert await removed(store) == ["whk_2"]
    assert await samples.count(store, "webhooks") == 2
