"""Every index of the message list returns the same messages, is read alone, and stops at the floor."""

import dataclasses
import itertools
import re

import pytest

from postroad.storage import messages, queue, recipients
from postroad.storage.sqlite import SqliteStore
from postroad.storage.store import Store
from tests.storage import samples

INDEXES = {
    messages.ListIndex.TIME: "sqlite_autoindex_messages_1 (account_id=? AND id>? AND id<?)",
    messages.ListIndex.SENDER: "messages_by_sender (account_id=? AND sender_key=? AND id>? AND id<?)",
    messages.ListIndex.STATUS: "messages_by_status (account_id=? AND status=? AND id>? AND id<?)",
    messages.ListIndex.TEST: "messages_test (account_id=? AND id>? AND id<?)",
    messages.ListIndex.QUEUE: "queue USING PRIMARY KEY (account_id=? AND message_id>? AND message_id<?)",
    messages.ListIndex.TAG: "message_tags USING PRIMARY KEY (account_id=? AND tag=? AND message_id>? AND message_id<?)",
    messages.ListIndex.METADATA: "message_metadata USING PRIMARY KEY "
    "(account_id=? AND entry=? AND message_id>? AND message_id<?)",
    messages.ListIndex.RECIPIENT: "recipients_by_email "
    "(account_id=? AND email_key=? AND message_id>? AND message_id<?)",
}
SENDERS = ("shop@example.com", "news@example.com")
STATES = ("queued", "delivered", "failed")
SOURCES = ("api", "smtp")
SUBJECTS = ("Your ORDER 50%", "Grüße, 'order' 📮", "news")


def number_of(message: messages.NewMessage) -> int:
    return int(message.id.removeprefix("em_"))


def status_of(message: messages.NewMessage) -> str:
    return STATES[number_of(message) % 3]


MESSAGES = [
    samples.message(
        f"em_{number:03}",
        sender_key=SENDERS[number % 2],
        source=SOURCES[number // 2 % 2],
        subject=SUBJECTS[number // 4 % 3],
        tags=("all", f"tag{number % 4}"),
        metadata=f'{{"order":"{number % 5}","all":""}}',
        recipient_count=2,
    )
    for number in range(48)
]


@pytest.fixture
async def full(store: Store) -> Store:
    """Messages that differ in every way; each has a recipient of its own kind and one that all have."""
    foreign = samples.message("em_020", "acc_2", tags=("all",), subject="order")
    people = [samples.recipient(m.id, place) for m in MESSAGES for place in (0, 1 + number_of(m) % 3)]
    foreign_one = samples.recipient("em_020", 0, "acc_2")
    waiting = [one for one in people if int(one.message_id.removeprefix("em_")) % 3 == 0]
    async with store.transaction() as tx:
        await messages.insert(tx, [*MESSAGES, foreign])
        await recipients.insert(tx, [*people, foreign_one])
        sizes = {one.message_id: 1 for one in people}
        await queue.insert(tx, [*waiting, foreign_one], sizes, now=samples.NOW)
        ended = [("acc_1", m.id, status_of(m), "settled", samples.NOW) for m in MESSAGES if status_of(m) != "queued"]
        await messages.finish(tx, ended)
    return store


def passes(message: messages.NewMessage, chosen: messages.Filter) -> bool:
    people = {"person0@example.org", f"person{1 + number_of(message) % 3}@example.org"}
    return (
        chosen.after <= message.id < chosen.before
        and chosen.status in (None, status_of(message))
        and chosen.source in (None, message.source)
        and chosen.sender_key in (None, message.sender_key)
        and (chosen.tag is None or chosen.tag in message.tags)
        and chosen.metadata in (None, f"order:{number_of(message) % 5}")
        and (chosen.recipient_key is None or chosen.recipient_key in people)
        and all(word in message.subject.lower() for word in chosen.words)
    )


def combinations() -> list[messages.Filter]:
    """Each filter absent, common and selective, with each other."""
    values = itertools.product(
        (None, "queued", "failed"),
        (None, "smtp"),
        (None, "shop@example.com"),
        (None, "person0@example.org", "person2@example.org"),
        (None, "all", "tag1"),
        ((), ("order",), ("order", "50%")),
    )
    names = ("status", "source", "sender_key", "recipient_key", "tag", "words")
    made = [messages.Filter(after="em_003", before="em_045", **dict(zip(names, row, strict=True))) for row in values]  # type: ignore[arg-type]
    return [*made, *(dataclasses.replace(chosen, metadata="order:1") for chosen in made[::7])]


async def test_all_filters_hold_on_whatever_way(full: Store) -> None:
    async with full.scanning() as tx:
        for chosen in combinations():
            expected = [m.id for m in reversed(MESSAGES) if passes(m, chosen)]
            for walk in messages._usable_indexes(chosen):
                found = await messages.page(tx, "acc_1", chosen, limit=99, index=walk)
                assert [message.id for message in found] == expected, (walk, chosen)


async def test_what_is_read_from_the_reach_on_down_is_all_there_is(full: Store) -> None:
    """A page after the other, each with few entries to look at, finds the same as one that looks at all."""
    async with full.scanning() as tx:
        for chosen in combinations():
            seen: list[str] = []
            before = chosen.before
            while True:
                rest = dataclasses.replace(chosen, before=before)
                reach = await messages.plan_scan(tx, "acc_1", rest, limit=7)
                part = dataclasses.replace(rest, after=reach.floor or rest.after)
                seen += [m.id for m in await messages.page(tx, "acc_1", part, limit=99, index=reach.index)]
                if reach.floor is None:
                    break
                before = reach.floor
            assert seen == [m.id for m in reversed(MESSAGES) if passes(m, chosen)], chosen


async def reach_of(store: Store, *, most: int, **filters: object) -> tuple[str, str | None]:
    chosen = messages.Filter(after="", before="em_~", **filters)  # type: ignore[arg-type]
    async with store.scanning() as tx:
        reach = await messages.plan_scan(tx, "acc_1", chosen, limit=most)
    return reach.index, reach.floor


async def test_the_way_that_leads_furthest_back_is_taken(full: Store) -> None:
    assert await reach_of(full, most=4, tag="all", sender_key="shop@example.com") == ("sender", "em_040")
    assert await reach_of(full, most=4, tag="tag0", sender_key="shop@example.com") == ("tag", "em_032")
    assert await reach_of(full, most=4, tag="all", status="failed") == ("status", "em_038")
    assert await reach_of(full, most=4, tag="all", recipient_key="person0@example.org") == ("recipient", "em_044")
    assert await reach_of(full, most=4, words=("order",)) == ("time", "em_044")
    # Two recipients of each message stand in the queue, so four entries are two messages.
    assert await reach_of(full, most=4, status="queued", source="smtp") == ("queue", "em_042")


async def test_a_way_that_leads_to_the_end_has_no_floor(full: Store) -> None:
    assert await reach_of(full, most=13, tag="tag0", sender_key="shop@example.com") == ("tag", None)
    assert await reach_of(full, most=12, tag="tag0", sender_key="shop@example.com") == ("tag", "em_000")
    assert await reach_of(full, most=4, tag="nothing", sender_key="shop@example.com") == ("tag", None)


async def test_a_single_filter_that_has_an_index_needs_no_floor(full: Store) -> None:
    for filters in (
        {},
        {"tag": "all"},
        {"metadata": "all:"},
        {"status": "queued"},
        {"status": "delivered"},
        {"sender_key": SENDERS[0]},
    ):
        assert (await reach_of(full, most=1, **filters))[1] is None


async def test_live_and_test_messages_are_listed_apart_and_tests_by_their_own_index(full: Store) -> None:
    tests = [samples.message(f"em_{number:03}x", is_test=1) for number in (5, 30, 47)]
    async with full.transaction() as tx:
        await messages.insert(tx, tests)
        live = messages.Filter(after="", before="em_~", is_test=0)
        newest = await messages.page(tx, "acc_1", live, limit=2)
        test = dataclasses.replace(live, is_test=1)
        listed = await messages.page(tx, "acc_1", test, limit=9, index=messages.ListIndex.TEST)
        every = await messages.page(tx, "acc_1", dataclasses.replace(live, is_test=None), limit=99)
    assert [one.id for one in newest] == ["em_047", "em_046"]
    assert [(one.id, one.is_test) for one in listed] == [("em_047x", 1), ("em_030x", 1), ("em_005x", 1)]
    assert len(every) == 51
    # A bounded number of entries is read, also where tests are many.
    assert await reach_of(full, most=2, is_test=0) == ("time", "em_047")
    assert await reach_of(full, most=99, is_test=0) == ("time", None)
    assert await reach_of(full, most=1, is_test=1) == ("test", None)
    assert await reach_of(full, most=2, is_test=1, tag="all") == ("test", "em_030x")


@pytest.mark.parametrize(
    "word, count",
    [
        ("order", 32),
        ("ORDER", 0),
        ("50%", 16),
        ("%", 16),
        ("_", 0),
        ("'", 16),
        ("📮", 16),
        ("grü", 16),
        ("Ü", 0),
        ("\\", 0),
    ],
)
async def test_words_are_plain_text_whatever_they_hold(full: Store, word: str, count: int) -> None:
    chosen = messages.Filter(after="", before="em_~", words=(word,))
    async with full.scanning() as tx:
        assert len(await messages.page(tx, "acc_1", chosen, limit=99)) == count


@pytest.mark.parametrize("walk", messages.ListIndex)
def test_each_way_walks_along_its_own_index(sqlite_store: SqliteStore, walk: messages.ListIndex) -> None:
    for query in ("floor", "page"):
        statement = sqlite_store._statements[f"messages_listed.{query}_by_{walk}"]
        places = max(int(place) for place in re.findall(r"\?(\d+)", statement))
        steps = sqlite_store._writer.execute(f"EXPLAIN QUERY PLAN {statement}", (None,) * places).fetchall()
        assert str(steps[0][3]).endswith(INDEXES[walk])
