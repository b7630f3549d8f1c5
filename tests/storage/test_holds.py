"""What the operator holds back: which recipients it covers, how they are shown, and what may be a duplicate."""

from postroad.storage import holds, queue, queue_views
from postroad.storage.store import Store
from tests.storage import samples
from tests.storage.test_queue_views import ALL, NOW, add, claim

EVERYTHING = holds.Hold("", "", "a test", NOW)


async def put(store: Store, hold: holds.Hold) -> bool:
    async with store.transaction() as tx:
        return await holds.put(tx, hold)


async def states(store: Store) -> dict[str, str]:
    async with store.scanning() as tx:
        return {row.recipient_id: row.state for row in await queue_views.page(tx, ALL, state=None, limit=10)}


def test_a_hold_covers_everything_an_account_a_domain_or_a_domain_of_an_account() -> None:
    keys = ("a.example acc_1", "b.example acc_1", "a.example acc_2", "b.example acc_2")

    def covered(account_id: str, domain: str) -> list[bool]:
        found = holds.by_key([holds.Hold(account_id, domain, "", 1)], in_force=True)
        return [holds.covering(found, key) is not None for key in keys]

    assert covered("", "") == [True, True, True, True]
    assert covered("acc_1", "") == [True, True, False, False]
    assert covered("", "a.example") == [True, False, True, False]
    assert covered("acc_2", "b.example") == [False, False, False, True]
    assert holds.covering({}, keys[0]) is None


async def test_held_recipients_are_shown_and_counted_as_held_and_those_being_sent_are_not(store: Store) -> None:
    await add(store, "rcp_1", "rcp_2", "rcp_3")
    await add(store, "rcp_4", account_id="acc_2", message_id="em_2")
    (first, _) = await claim(store, 2)
    async with store.transaction() as tx:
        await queue.postpone(tx, [(first, NOW + 300)], worker="w")
    assert await states(store) == {"rcp_1": "waiting", "rcp_2": "sending", "rcp_3": "ready", "rcp_4": "ready"}
    await put(store, holds.Hold("acc_1", "example.org", "a test", NOW))
    assert await states(store) == {"rcp_1": "held", "rcp_2": "sending", "rcp_3": "held", "rcp_4": "ready"}
    async with store.scanning() as tx:
        assert (await queue_views.counts(tx, ALL))["held"] == queue_views.Count("held", 2, NOW, NOW)
        assert len(await queue_views.page(tx, ALL, state="held", limit=10)) == 2
        assert [row.state for row in await queue_views.of_message(tx, "acc_1", "em_1")] == ["held", "sending", "held"]
        first_of_account = await queue_views.first(tx, "acc_1")
        assert first_of_account is not None
        assert first_of_account.state == "held"
    async with store.transaction() as tx:
        assert await holds.release(tx, holds.Hold("acc_1", "example.org", "", 0), now=NOW + 1)
    assert await states(store) == {"rcp_1": "waiting", "rcp_2": "sending", "rcp_3": "ready", "rcp_4": "ready"}


async def test_a_second_hold_changes_nothing_and_a_restore_or_a_new_hold_does(store: Store) -> None:
    assert await put(store, EVERYTHING)
    assert not await put(store, holds.Hold("", "", "again", NOW + 1))
    restored = holds.Hold("", "", "restored", NOW + 2, None, NOW + 2)
    assert await put(store, restored)
    assert not await put(store, EVERYTHING)
    async with store.transaction() as tx:
        assert await holds.listed(tx) == [restored]
        assert await holds.release(tx, restored, now=NOW + 3)
        assert not await holds.release(tx, restored, now=NOW + 4)
        assert await holds.in_force(tx) == {}
        assert [one.released_at for one in await holds.listed(tx)] == [NOW + 3]
        assert await holds.sweep(tx, released_before=NOW + 3) == 0
    assert await put(store, EVERYTHING)
    async with store.transaction() as tx:
        assert await holds.in_force(tx) == {("", ""): EVERYTHING}
        assert await holds.sweep(tx, released_before=NOW + 9) == 0
        await holds.release(tx, EVERYTHING, now=NOW + 5)
        assert await holds.sweep(tx, released_before=NOW + 9) == 1
        assert await holds.listed(tx) == []


async def test_what_a_hold_covers_is_counted_and_listed_up_to_a_time(store: Store) -> None:
    await add(store, "rcp_1", "rcp_2", "rcp_3")
    await add(store, "rcp_4", account_id="acc_2", message_id="em_2")
    async with store.scanning() as tx:
        counts = await holds.counts(tx, EVERYTHING, queued_before=NOW + 1)
        assert counts == [("example.org acc_1", 3), ("example.org acc_2", 1)]
        assert await holds.counts(tx, EVERYTHING, queued_before=NOW) == []
        of_account = holds.Hold("acc_2", "example.org", "", NOW)
        assert await holds.counts(tx, of_account, queued_before=NOW + 1) == [("example.org acc_2", 1)]
        first = await holds.recipients(tx, EVERYTHING, queued_before=NOW + 1, after=("", "", ""), limit=2)
        after = (first[-1].account_id, first[-1].message_id, first[-1].recipient_id)
        rest = await holds.recipients(tx, EVERYTHING, queued_before=NOW + 1, after=after, limit=9)
        assert [one.recipient_id for one in (*first, *rest)] == ["rcp_1", "rcp_2", "rcp_3", "rcp_4"]
        assert await holds.newest_message_at(tx) == samples.NOW
