"""What the operator holds back: which recipients it covers, how they are shown, and what may be a duplicate."""

from postroad.storage.engine.store import Store
from postroad.storage.mail import delivery_controls, queue, queue_views
from tests.storage import samples
from tests.storage.test_queue_views import ALL, NOW, add, claim

EVERYTHING = delivery_controls.Hold("", "", "a test", NOW)


async def put(store: Store, hold: delivery_controls.Hold) -> bool:
    async with store.transaction() as tx:
        return await delivery_controls.put_hold(tx, hold)


async def states(store: Store) -> dict[str, str]:
    async with store.scanning() as tx:
        return {row.recipient_id: row.state for row in await queue_views.page(tx, ALL, state=None, limit=10)}


def test_a_hold_covers_everything_an_account_a_domain_or_a_domain_of_an_account() -> None:
    keys = ("a.example acc_1", "b.example acc_1", "a.example acc_2", "b.example acc_2")

    def covered(account_id: str, domain: str) -> list[bool]:
        found = delivery_controls.hold_by_key([delivery_controls.Hold(account_id, domain, "", 1)], in_force=True)
        return [delivery_controls.holds_covering(found, key) is not None for key in keys]

    assert covered("", "") == [True, True, True, True]
    assert covered("acc_1", "") == [True, True, False, False]
    assert covered("", "a.example") == [True, False, True, False]
    assert covered("acc_2", "b.example") == [False, False, False, True]
    assert delivery_controls.holds_covering({}, keys[0]) is None


async def test_held_recipients_are_shown_and_counted_as_held_and_those_being_sent_are_not(store: Store) -> None:
    await add(store, "rcp_1", "rcp_2", "rcp_3")
    await add(store, "rcp_4", account_id="acc_2", message_id="em_2")
    (first, _) = await claim(store, 2)
    async with store.transaction() as tx:
        await queue.postpone(tx, [(first, NOW + 300)], worker="w")
    assert await states(store) == {"rcp_1": "waiting", "rcp_2": "sending", "rcp_3": "ready", "rcp_4": "ready"}
    await put(store, delivery_controls.Hold("acc_1", "example.org", "a test", NOW))
    assert await states(store) == {"rcp_1": "held", "rcp_2": "sending", "rcp_3": "held", "rcp_4": "ready"}
    async with store.scanning() as tx:
        assert (await queue_views.counts(tx, ALL))["held"] == queue_views.Count("held", 2, NOW, NOW)
        assert len(await queue_views.page(tx, ALL, state="held", limit=10)) == 2
        assert [row.state for row in await queue_views.of_message(tx, "acc_1", "em_1")] == ["held", "sending", "held"]
        first_of_account = await queue_views.first(tx, "acc_1")
        assert first_of_account is not None
        assert first_of_account.state == "held"
    async with store.transaction() as tx:
        assert await delivery_controls.release_hold(
            tx, delivery_controls.Hold("acc_1", "example.org", "", 0), now=NOW + 1
        )
    assert await states(store) == {"rcp_1": "waiting", "rcp_2": "sending", "rcp_3": "ready", "rcp_4": "ready"}


async def test_a_second_hold_changes_nothing_and_a_restore_or_a_new_hold_does(store: Store) -> None:
    assert await put(store, EVERYTHING)
    assert not await put(store, delivery_controls.Hold("", "", "again", NOW + 1))
    restored = delivery_controls.Hold("", "", "restored", NOW + 2, None, NOW + 2)
    assert await put(store, restored)
    assert not await put(store, EVERYTHING)
    async with store.transaction() as tx:
        assert await delivery_controls.listed_holds(tx) == [restored]
        assert await delivery_controls.release_hold(tx, restored, now=NOW + 3)
        assert not await delivery_controls.release_hold(tx, restored, now=NOW + 4)
        assert await delivery_controls.holds_in_force(tx) == {}
        assert [one.released_at for one in await delivery_controls.listed_holds(tx)] == [NOW + 3]
        assert await delivery_controls.sweep_holds(tx, released_before=NOW + 3) == 0
    assert await put(store, EVERYTHING)
    async with store.transaction() as tx:
        assert await delivery_controls.holds_in_force(tx) == {("", ""): EVERYTHING}
        assert await delivery_controls.sweep_holds(tx, released_before=NOW + 9) == 0
        await delivery_controls.release_hold(tx, EVERYTHING, now=NOW + 5)
        assert await delivery_controls.sweep_holds(tx, released_before=NOW + 9) == 1
        assert await delivery_controls.listed_holds(tx) == []


async def test_what_a_hold_covers_is_counted_and_listed_up_to_a_time(store: Store) -> None:
    await add(store, "rcp_1", "rcp_2", "rcp_3")
    await add(store, "rcp_4", account_id="acc_2", message_id="em_2")
    async with store.scanning() as tx:
        counts = await delivery_controls.held_counts(tx, EVERYTHING, queued_before=NOW + 1)
        assert counts == [("example.org acc_1", 3), ("example.org acc_2", 1)]
        assert await delivery_controls.held_counts(tx, EVERYTHING, queued_before=NOW) == []
        of_account = delivery_controls.Hold("acc_2", "example.org", "", NOW)
        assert await delivery_controls.held_counts(tx, of_account, queued_before=NOW + 1) == [("example.org acc_2", 1)]
        first = await delivery_controls.held_recipients(
            tx, EVERYTHING, queued_before=NOW + 1, after=("", "", ""), limit=2
        )
        after = (first[-1].account_id, first[-1].message_id, first[-1].recipient_id)
        rest = await delivery_controls.held_recipients(tx, EVERYTHING, queued_before=NOW + 1, after=after, limit=9)
        assert [one.recipient_id for one in (*first, *rest)] == ["rcp_1", "rcp_2", "rcp_3", "rcp_4"]
        assert await delivery_controls.newest_held_at(tx) == samples.NOW
