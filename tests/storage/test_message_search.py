"""Every index of the message list returns the same messages, is read alone, and stops at the floor."""

import dataclasses
import itertools
import re

import pytest

from postroad.model.mail import statuses
from postroad.storage.engine.sqlite import SqliteStore
from postroad.storage.engine.store import Store
from postroad.storage.mail import message_search, messages
from postroad.storage.mail.message_search import Clause, Condition, Kind
from tests.storage import samples, searched_messages
from tests.storage.searched_messages import MESSAGES, passes

# The index that the list of the first condition reads, whatever the second one.
INDEXES = {
    (): "sqlite_autoindex_messages_1 (account_id=? AND id>? AND id<?)",
    (Kind.SENDER, Kind.STATUS): "messages_by_sender (account_id=? AND sender_key=? AND id>? AND id<?)",
    (Kind.STATUS, Kind.SENDER): "messages_undelivered (account_id=? AND status=? AND id>? AND id<?)",
    (Kind.TAG, Kind.SENDER): "message_tags USING PRIMARY KEY "
    "(account_id=? AND tag=? AND message_id>? AND message_id<?)",
    (Kind.METADATA, Kind.STATUS): "message_metadata USING PRIMARY KEY "
    "(account_id=? AND entry=? AND message_id>? AND message_id<?)",
    (Kind.RECIPIENT, Kind.OUTCOME): "recipients_by_email "
    "(account_id=? AND email_key=? AND message_id>? AND message_id<?)",
    (Kind.OUTCOME, Kind.RECIPIENT): "recipients_undelivered "
    "(account_id=? AND status=? AND message_id>? AND message_id<?)",
    (Kind.REASON, Kind.CODE): "recipients_undelivered (account_id=? AND status=? AND message_id>? AND message_id<?)",
}
VALUES: dict[Kind, str | int] = {
    Kind.STATUS: "failed",
    Kind.SENDER: "shop@example.com",
    Kind.TAG: "all",
    Kind.METADATA: "order:1",
    Kind.RECIPIENT: "person0@example.org",
    Kind.OUTCOME: "bounced",
    Kind.REASON: "mailbox_full",
    Kind.CODE: 452,
}


@pytest.fixture
async def full(store: Store) -> Store:
    await searched_messages.fill(store)
    return store


def chosen_by(*clauses: Clause, after: str = "em_003", before: str = "em_045") -> message_search.Filter:
    return message_search.Filter(after=after, before=before, clauses=clauses)


def combinations() -> list[message_search.Filter]:
    """Each filter absent, common and selective, with each other."""
    values = itertools.product(
        (None, Condition(Kind.STATUS, "queued"), Condition(Kind.STATUS, "failed")),
        (None, Condition(Kind.SOURCE, "smtp")),
        (None, Condition(Kind.SENDER, "shop@example.com")),
        (None, Condition(Kind.RECIPIENT, "person0@example.org"), Condition(Kind.RECIPIENT, "person2@gmail.com")),
        (None, Condition(Kind.TAG, "all"), Condition(Kind.TAG, "tag1")),
        (None, Condition(Kind.WORD, "order"), Condition(Kind.WORD, "50%")),
    )
    made = [chosen_by(*((one,) for one in row if one is not None)) for row in values]
    metadata = (Condition(Kind.METADATA, "order:1"),)
    return [*made[::5], *(dataclasses.replace(one, clauses=(*one.clauses, metadata)) for one in made[::23])]


def singles() -> list[Condition]:
    """A condition of each kind, as it is and negated."""
    plain = [
        *(Condition(kind, value) for kind, value in VALUES.items()),
        *(Condition(Kind.OUTCOME, outcome) for outcome in statuses.RecipientStatus),
        Condition(Kind.SOURCE, "smtp"),
        Condition(Kind.SENDER_DOMAIN, "@example.com"),
        Condition(Kind.SENDER_DOMAIN, f"@{'x' * 60}"),
        Condition(Kind.SENDER_PREFIX, "sh"),
        Condition(Kind.ID, "em_007"),
        Condition(Kind.ID_PREFIX, "em_01"),
        Condition(Kind.WORD, "order"),
        Condition(Kind.RECIPIENT_DOMAIN, "gmail.com"),
        Condition(Kind.RECIPIENT_PREFIX, "person"),
        Condition(Kind.RECIPIENT_PREFIX, "person2"),
        Condition(Kind.UNATTEMPTED, "bounced"),
        Condition(Kind.UNATTEMPTED, "failed"),
        Condition(Kind.CAUSE, "unsubscribed"),
        Condition(Kind.VERDICT, "retry"),
        Condition(Kind.CODE, 250),
        Condition(Kind.CODE, 550),
        Condition(Kind.ENHANCED_CODE, "2.0.0"),
        Condition(Kind.ENHANCED_CODE, "4.2.2"),
        Condition(Kind.FAULT, "rate"),
        Condition(Kind.PROVIDER, "google"),
        Condition(Kind.PROVIDER, "upstream:relay"),
        Condition(Kind.OTHER_PROVIDER, "upstream:"),
    ]
    assert {one.kind for one in plain} == set(Kind)
    return [*plain, *(dataclasses.replace(one, is_negated=True) for one in plain)]


async def listed(store: Store, chosen: message_search.Filter, *, examined: int) -> tuple[list[str], int]:
    """All pages and all counts, each with few entries to look at."""
    seen: list[str] = []
    counted = 0
    async with store.scanning() as tx:
        while True:
            plan = await message_search.plan(tx, "acc_1", chosen, limit=examined)
            page = [m.id for m in await message_search.page(tx, "acc_1", chosen, plan, limit=99)]
            newest = [m.id for m in await message_search.page(tx, "acc_1", chosen, plan, limit=1)]
            assert newest == page[:1], chosen
            seen += page
            counted += await message_search.count(tx, "acc_1", chosen, plan, limit=99)
            if plan.floor is None:
                return seen, counted
            chosen = dataclasses.replace(chosen, before=plan.floor)


async def check(store: Store, chosen: message_search.Filter) -> None:
    expected = [m.id for m in reversed(MESSAGES) if passes(m, chosen)]
    for examined in (99, 7):
        found, counted = await listed(store, chosen, examined=examined)
        assert found == expected, chosen
        assert counted == len(expected), chosen


async def test_all_filters_hold_however_few_entries_a_page_examines(full: Store) -> None:
    for chosen in combinations():
        await check(full, chosen)


async def test_each_condition_is_true_of_the_same_messages_as_in_words_and_negated_of_the_others(full: Store) -> None:
    for one in singles():
        await check(full, chosen_by((one,)))


async def test_alternatives_and_exclusions_are_combined(full: Store) -> None:
    bounced, deferred = Condition(Kind.OUTCOME, "bounced"), Condition(Kind.OUTCOME, "deferred")
    gmail, tag = Condition(Kind.RECIPIENT_DOMAIN, "gmail.com"), Condition(Kind.TAG, "tag1")
    without = Condition(Kind.RECIPIENT, "person2@gmail.com", is_negated=True)
    for clauses in (
        ((bounced, deferred),),
        ((bounced, tag),),
        ((bounced, without),),
        ((bounced,), (gmail,)),
        ((bounced, deferred), (gmail,), (tag,)),
        ((bounced, Condition(Kind.REASON, "greylisted")), (without,)),
        ((Condition(Kind.STATUS, "queued"), Condition(Kind.STATUS, "failed")),),
        ((Condition(Kind.RECIPIENT_PREFIX, "person1"), Condition(Kind.CODE, 451)), (Condition(Kind.WORD, "order"),)),
    ):
        await check(full, chosen_by(*clauses))


async def test_what_is_asked_of_recipients_is_true_of_one_and_the_same(full: Store) -> None:
    """Every message has a recipient at example.org that is queued; another one may be bounced."""
    bounced, here = Condition(Kind.OUTCOME, "bounced"), Condition(Kind.RECIPIENT, "person0@example.org")
    assert await listed(full, chosen_by((bounced,), (here,)), examined=99) == ([], 0)
    assert len((await listed(full, chosen_by((bounced,)), examined=99))[0]) == 14


async def plan_of(
    store: Store, *conditions: Condition, most: int, is_test: int | None = None
) -> tuple[str, str | None]:
    chosen = message_search.Filter(
        after="", before="em_~", is_test=is_test, clauses=tuple((one,) for one in conditions)
    )
    async with store.scanning() as tx:
        plan = await message_search.plan(tx, "acc_1", chosen, limit=most)
    return plan.name, plan.floor


async def test_the_index_that_reaches_furthest_back_is_read(full: Store) -> None:
    every, sender = Condition(Kind.TAG, "all"), Condition(Kind.SENDER, "shop@example.com")
    person = Condition(Kind.RECIPIENT, "person0@example.org")
    assert await plan_of(full, every, sender, most=4) == ("sender", "em_040")
    assert await plan_of(full, Condition(Kind.TAG, "tag0"), sender, most=4) == ("tag", "em_032")
    assert await plan_of(full, every, Condition(Kind.STATUS, "failed"), most=4) == ("status", "em_038")
    assert await plan_of(full, every, person, most=4) == ("tag", "em_044")
    assert await plan_of(full, Condition(Kind.WORD, "order"), most=4) == ("time", "em_044")
    assert await plan_of(full, every, Condition(Kind.OUTCOME, "bounced"), most=4) == ("outcome", "em_040")
    assert await plan_of(full, every, Condition(Kind.REASON, "mailbox_full"), most=9) == ("reason", "em_035")
    # A message has an entry for each of its recipients in the queue.
    queued = Condition(Kind.STATUS, "queued")
    assert await plan_of(full, queued, Condition(Kind.SOURCE, "smtp"), most=8) == ("status", "em_042")
    # Nearly all messages are delivered.
    assert await plan_of(full, Condition(Kind.STATUS, "delivered"), most=4) == ("time", "em_044")
    # An exclusion is found in no index.
    assert await plan_of(full, Condition(Kind.TAG, "all", is_negated=True), most=4) == ("time", "em_044")


async def test_the_same_messages_are_found_from_the_oldest_on(full: Store) -> None:
    for one in (*singles(), Condition(Kind.OUTCOME, "deferred")):
        chosen = chosen_by((one,))
        expected = [m.id for m in MESSAGES if passes(m, chosen)]
        found: list[str] = []
        async with full.scanning() as tx:
            while True:
                plan = await message_search.plan(tx, "acc_1", chosen, limit=7, is_oldest_first=True)
                found += [m.id for m in await message_search.page(tx, "acc_1", chosen, plan, limit=99)]
                if plan.floor is None:
                    break
                chosen = dataclasses.replace(chosen, after=f"{plan.floor}0")
        assert found == expected, one


async def test_an_index_that_is_read_to_its_end_has_no_floor(full: Store) -> None:
    sender = Condition(Kind.SENDER, "shop@example.com")
    assert await plan_of(full, Condition(Kind.TAG, "tag0"), sender, most=13) == ("tag", None)
    assert await plan_of(full, Condition(Kind.TAG, "tag0"), sender, most=12) == ("tag", "em_000")
    assert await plan_of(full, Condition(Kind.TAG, "nothing"), sender, most=4) == ("tag", None)


def test_addresses_that_begin_alike_are_found_by_their_index(
    sqlite_store: SqliteStore,
) -> None:
    statement = message_search._BY_PREFIX.format("?4", "?5", entry="entry", join="").replace("$", "?")
    steps = sqlite_store._writer.execute(f"EXPLAIN QUERY PLAN {statement}", (None,) * 5).fetchall()
    assert str(steps[0][3]).endswith("recipients_by_email (account_id=? AND email_key>? AND email_key<?)")


async def test_addresses_that_begin_alike_are_read_together_while_they_are_few(full: Store) -> None:
    prefix = Condition(Kind.RECIPIENT_PREFIX, "person1")
    assert await plan_of(full, prefix, most=17) == ("recipient_prefix", None)
    assert await plan_of(full, prefix, most=16) == ("time", "em_032")


async def test_live_and_test_messages_are_listed_apart_and_tests_by_their_own_index(full: Store) -> None:
    tests = [samples.message(f"em_{number:03}x", is_test=1) for number in (5, 30, 47)]
    async with full.transaction() as tx:
        await messages.insert(tx, tests)
        live = message_search.Filter(after="", before="em_~", is_test=0)
        newest = await message_search.page(tx, "acc_1", live, limit=2)
        test = dataclasses.replace(live, is_test=1)
        plan = await message_search.plan(tx, "acc_1", test, limit=9)
        found = await message_search.page(tx, "acc_1", test, plan, limit=9)
        every = await message_search.page(tx, "acc_1", dataclasses.replace(live, is_test=None), limit=99)
    assert [one.id for one in newest] == ["em_047", "em_046"]
    assert plan.name == "test"
    assert [(one.id, one.is_test) for one in found] == [("em_047x", 1), ("em_030x", 1), ("em_005x", 1)]
    assert len(every) == 51
    # A bounded number of entries is read, also where tests are many.
    assert await plan_of(full, most=2, is_test=0) == ("time", "em_047")
    assert await plan_of(full, most=99, is_test=0) == ("time", None)
    assert await plan_of(full, Condition(Kind.TAG, "all"), most=2, is_test=1) == ("test", "em_030x")


async def test_words_are_plain_text_whatever_they_hold(full: Store) -> None:
    counts = {"order": 32, "ORDER": 0, "50%": 16, "%": 16, "_": 0, "'": 16, "📮": 16, "grü": 16, "Ü": 0, "\\": 0}
    async with full.scanning() as tx:
        for word, count in counts.items():
            chosen = chosen_by((Condition(Kind.WORD, word),), after="", before="em_~")
            assert len(await message_search.page(tx, "acc_1", chosen, limit=99)) == count, word
            counted = await message_search.count(tx, "acc_1", chosen, message_search.BY_TIME, limit=5)
            assert counted == min(count, 5), word


@pytest.mark.parametrize("kinds", INDEXES, ids=lambda kinds: " and ".join(kinds) or "time")
async def test_each_list_reads_its_own_index_in_the_order_of_time(
    sqlite_store: SqliteStore, kinds: tuple[Kind, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Checked with SQLite's plans; the indexes are the same on PostgreSQL."""
    chosen = chosen_by(*((Condition(kind, VALUES[kind]),) for kind in kinds))
    asked: list[str] = []
    async with sqlite_store.scanning() as tx:
        fetch = tx.fetch_composed

        async def keep(statement: str, *arguments: object) -> list[object]:
            asked.append(re.sub(r"\$(\d+)", r"?\1", statement))
            return await fetch(statement, *arguments)  # type: ignore[return-value]

        monkeypatch.setattr(tx, "fetch_composed", keep)
        plan = await message_search.plan(tx, "acc_1", chosen, limit=9)
        await message_search.page(tx, "acc_1", chosen, plan, limit=9)
        await message_search.count(tx, "acc_1", chosen, plan, limit=9)
    assert len(asked) == 3 + (not plan.is_in_order)
    for statement in asked:
        places = max(int(place) for place in re.findall(r"\?(\d+)", statement))
        rows = sqlite_store._writer.execute(f"EXPLAIN QUERY PLAN {statement}", (None,) * places).fetchall()
        steps = [str(row[3]) for row in rows]
        searched = [step for step in steps if step.startswith("SEARCH")]
        assert searched[0].endswith(INDEXES[kinds]), steps
        assert {step for step in steps if step.startswith("SCAN")} <= {"SCAN counted", "SCAN entries", "SCAN scanned"}
        # Everything else is found by its key.
        others = {step for step in searched if not step.endswith(INDEXES[kinds])}
        assert all(re.search(r"message_id=\?|\(account_id=\? AND id=\?\)", step) for step in others), steps
        # Only the entries of a list that may name a message twice are sorted; the floor keeps them few.
        if kinds[:1] not in ((Kind.OUTCOME,), (Kind.REASON,)):
            assert not any("TEMP B-TREE" in step for step in steps), steps
