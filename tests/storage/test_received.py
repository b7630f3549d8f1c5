"""Routes take mail while their domain is verified; what they stored is found by its account alone, once."""

import msgspec
import pytest

from postroad.storage.engine import migrations, open_store
from postroad.storage.engine.store import ConstraintViolated, Store, Transaction
from postroad.storage.mail import domains, received
from postroad.storage.operations import retention
from postroad.storage.people import accounts

ROUTE = received.Route("rt_1", "acc_1", "dom_1", "support@in.example.com", "store", None, 7)
MAIL = received.Received(
    account_id="acc_1",
    id="in_2",
    route_id="rt_1",
    recipient="support@in.example.com",
    envelope_sender="anna@example.net",
    sender="Anna <anna@example.net>",
    subject="An Order",
    message_id_field="<1@example.net>",
    email_id="em_1",
    size=4,
    attachment_count=1,
    authentication="{}",
    spam=None,
    client_address="192.0.2.1",
    fingerprint=b"\x00one",
    received_at=10,
)


async def own(tx: Transaction, account_id: str, domain_id: str, *, verified_at: int | None = 1) -> None:
    await accounts.insert(tx, account_id, name=account_id, now=1)
    await domains.insert(tx, domains.Domain(domain_id, account_id, "example.com", verified_at, 1))


async def test_the_first_key_that_a_route_has_takes_the_mail(tx: Transaction) -> None:
    await own(tx, "acc_1", "dom_1")
    rest = msgspec.structs.replace(ROUTE, id="rt_2", match_key="*@in.example.com", action="drop")
    assert await received.insert_route(tx, ROUTE)
    assert await received.insert_route(tx, rest)
    keys = ("support@in.example.com", "support+*@in.example.com", "*@in.example.com")
    assert await received.matching(tx, keys) == received.Match(ROUTE, is_active=True)
    assert await received.matching(tx, keys[1:]) == received.Match(rest, is_active=True)
    assert await received.matching(tx, keys[1:2]) is None
    assert await received.routes(tx, "acc_1", after="", limit=9) == [ROUTE, rest]
    assert await received.routes(tx, "acc_1", after="rt_1", limit=9) == [rest]
    assert await received.route(tx, "acc_2", "rt_1") is None
    assert await received.route(tx, "acc_1", "rt_1") == ROUTE
    assert await received.count_routes(tx, "acc_1") == 2
    assert not await received.remove_route(tx, "acc_2", "rt_1")
    assert await received.remove_route(tx, "acc_1", "rt_1")
    assert await received.matching(tx, keys) == received.Match(rest, is_active=True)


async def test_addresses_have_one_route_and_one_without_a_verified_domain_gives_way(tx: Transaction) -> None:
    await own(tx, "acc_1", "dom_1")
    await own(tx, "acc_2", "dom_2", verified_at=None)
    other = msgspec.structs.replace(ROUTE, id="rt_2", account_id="acc_2", domain_id="dom_2")
    assert await received.insert_route(tx, ROUTE)
    assert not await received.insert_route(tx, other)
    await domains.remove(tx, "acc_1", "dom_1")
    assert await received.matching(tx, [ROUTE.match_key]) is None
    await domains.verify(tx, "acc_2", "dom_2", now=2, by="dns")
    assert await received.insert_route(tx, other)
    assert await received.routes(tx, "acc_1", after="", limit=9) == []


async def test_an_account_that_is_suspended_receives_nothing(tx: Transaction) -> None:
    await own(tx, "acc_1", "dom_1")
    await received.insert_route(tx, ROUTE)
    await accounts.suspend(tx, "acc_1", reason="a test", by="operator", now=5)
    assert await received.matching(tx, [ROUTE.match_key]) == received.Match(ROUTE, is_active=False)


async def test_a_mail_is_stored_once(tx: Transaction) -> None:
    assert not await received.is_known(tx, "acc_1", MAIL.fingerprint)
    assert await received.insert(tx, MAIL, b"mime")
    assert not await received.insert(tx, msgspec.structs.replace(MAIL, id="in_3"), b"mime")
    assert await received.is_known(tx, "acc_1", MAIL.fingerprint)
    assert await received.by_id(tx, "acc_1", "in_2") == MAIL
    assert await received.body(tx, "acc_1", "in_2") == b"mime"
    assert await received.body(tx, "acc_1", "in_3") is None
    assert await received.by_id(tx, "acc_2", "in_2") is None
    assert await received.body(tx, "acc_2", "in_2") is None
    assert not await received.remove(tx, "acc_2", "in_2")
    assert await received.body(tx, "acc_1", "in_2") == b"mime"
    assert await received.remove(tx, "acc_1", "in_2")
    assert await received.body(tx, "acc_1", "in_2") is None


async def test_the_newest_come_first_and_can_be_chosen(tx: Transaction) -> None:
    later = msgspec.structs.replace(
        MAIL, id="in_5", route_id="rt_2", sender="bert@example.org", subject="50% off", email_id=None, fingerprint=b"2"
    )
    await received.insert(tx, MAIL, b"mime")
    await received.insert(tx, later, b"more")
    assert await received.of_account(tx, "acc_1", before="in_~", limit=9) == [later, MAIL]
    assert await received.of_account(tx, "acc_1", before="in_5", limit=9) == [MAIL]
    assert await received.of_account(tx, "acc_2", before="in_~", limit=9) == []
    assert await received.of_account(tx, "acc_1", before="in_~", limit=9, route_id="rt_2") == [later]
    assert await received.of_account(tx, "acc_1", before="in_~", limit=9, pattern="%anna@%") == [MAIL]
    assert await received.of_account(tx, "acc_1", before="in_~", limit=9, pattern=r"%50\%%") == [later]
    assert await received.of_account(tx, "acc_1", before="in_~", limit=9, pattern=r"%5\%%") == []
    assert await received.of_email(tx, "acc_1", "em_1", limit=9) == [MAIL]
    assert await received.of_email(tx, "acc_2", "em_1", limit=9) == []


async def test_counts_are_of_a_day_and_a_network(tx: Transaction) -> None:
    assert await received.count_of_day(tx, "acc_1", 1) == received.Count(0, 0)
    assert await received.add_count(tx, "acc_1", 1, "192.0.2.0/24", 5) == received.Count(1, 5)
    assert await received.add_count(tx, "acc_1", 1, "192.0.2.0/24", 7) == received.Count(2, 12)
    assert await received.add_count(tx, "acc_1", 2, "192.0.2.0/24", 1) == received.Count(1, 1)
    assert await received.add_count(tx, "acc_2", 1, "192.0.2.0/24", 1) == received.Count(1, 1)
    assert await received.count_of_day(tx, "acc_1", 1, "192.0.2.0/24") == received.Count(2, 12)
    assert await received.sweep_counts(tx, until_day=1) == 2
    assert await received.count_of_day(tx, "acc_1", 2, "192.0.2.0/24") == received.Count(1, 1)


async def test_content_expires_before_its_row(tx: Transaction) -> None:
    old = msgspec.structs.replace(MAIL, id="in_1", fingerprint=b"1", received_at=5)
    await received.insert(tx, old, b"old")
    await received.insert(tx, MAIL, b"mime")
    assert await retention.remove_received(tx, before=99) == 0
    assert await retention.remove_received_bodies(tx, before=10) == 1
    assert await retention.remove_received_bodies(tx, before=10) == 0
    assert await received.body(tx, "acc_1", "in_1") is None
    assert await received.by_id(tx, "acc_1", "in_1") == msgspec.structs.replace(old, has_body=False)
    assert await retention.remove_received(tx, before=5) == 0
    assert await retention.remove_received(tx, before=6) == 1
    assert await retention.remove_account_received_bodies(tx, "acc_2") == 0
    assert await retention.remove_account_received_bodies(tx, "acc_1") == 1


async def test_a_database_of_the_version_before_gets_the_tables_beside_its_data(
    new_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = migrations.known
    with monkeypatch.context() as patch:
        patch.setattr(migrations, "known", lambda dialect: known(dialect)[:2])
        older = await open_store.open_current(new_database_url, migrate=True)
    async with older.transaction() as tx:
        await own(tx, "acc_1", "dom_1")
    await older.close()
    newer = await open_store.open_current(new_database_url, migrate=True)
    async with newer.transaction() as tx:
        assert await received.insert_route(tx, ROUTE)
        assert await received.matching(tx, [ROUTE.match_key]) == received.Match(ROUTE, is_active=True)
        assert await received.insert(tx, MAIL, b"mime")
    await newer.close()


async def test_an_action_is_one_of_three(store: Store) -> None:
    with pytest.raises(ConstraintViolated):
        async with store.transaction() as tx:
            await received.insert_route(tx, msgspec.structs.replace(ROUTE, action="bounce"))
