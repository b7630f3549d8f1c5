"""Requests are noted in memory, written together, bounded for each account, and kept for a week without secrets."""

import dataclasses
import json

import msgspec
import pytest

from postroad import context, errors
from postroad.services import request_log
from postroad.services.operations import cleanup
from postroad.storage.people import request_log as stored
from tests import contexts, logged_requests


async def page(ctx: context.Context, account_id: str = "acc_1") -> list[stored.NamedEntry]:
    return (await request_log.page(ctx, account_id, request_log.Filters(), before=None, limit=2_000)).rows


async def test_requests_are_listed_newest_first_within_their_account(
    ctx: context.Context, clock: contexts.Clock
) -> None:
    requests = []
    for account_id in ("acc_1", "acc_2", "acc_1"):
        requests.append(logged_requests.refused(ctx, account_id))
        ctx.request_log.note(requests[-1])
        clock.pass_seconds(1)
    assert [entry.id for entry in await page(ctx)] == [requests[2].id, requests[0].id]
    assert [entry.id for entry in await page(ctx, "acc_2")] == [requests[1].id]
    with pytest.raises(errors.NotFound):
        await request_log.find(ctx, "acc_2", requests[0].id)


async def test_a_flood_of_an_account_is_counted_and_leaves_room_for_others(ctx: context.Context) -> None:
    for _ in range(500):
        logged_requests.note(ctx, "acc_1")
    logged_requests.note(ctx, "acc_2")
    (other,) = await page(ctx, "acc_2")
    entries = await page(ctx)
    assert (len(entries), sum(entry.skipped for entry in entries), other.skipped) == (50, 450, 0)


async def test_many_accounts_at_once_are_bounded_too(ctx: context.Context) -> None:
    for number in range(3_000):
        logged_requests.note(ctx, f"acc_{number}")
    assert [len(await page(ctx, f"acc_{number}")) for number in (0, 1_999, 2_000)] == [1, 1, 0]
    logged_requests.note(ctx, "acc_2000")
    assert len(await page(ctx, "acc_2000")) == 1


async def test_an_account_keeps_the_newest_thousand(ctx: context.Context, clock: contexts.Clock) -> None:
    newest = ""
    for number in range(1_003):
        if number % 50 == 0:
            await ctx.request_log.flush()
        clock.pass_seconds(0.001)
        newest = (request := logged_requests.refused(ctx, "acc_1")).id
        ctx.request_log.note(request)
    entries = await page(ctx)
    assert (len(entries), entries[0].id) == (1_000, newest)


async def test_an_account_keeps_a_mebibyte_of_bodies(ctx: context.Context, clock: contexts.Clock) -> None:
    body = json.dumps([["x" * 400] * 20]).encode()
    for number in range(400):
        if number % 50 == 0:
            await ctx.request_log.flush()
        clock.pass_seconds(0.001)
        ctx.request_log.note(logged_requests.refused(ctx, "acc_1", body=body))
    entries = await page(ctx)
    assert 250 <= len(entries) <= 256
    assert sum(len(entry.body) for entry in entries) <= 1_048_576


async def test_requests_are_kept_for_a_week(ctx: context.Context, clock: contexts.Clock) -> None:
    logged_requests.note(ctx, "acc_1")
    assert len(await page(ctx)) == 1
    clock.pass_seconds(7 * 86_400 - 1)
    assert (await cleanup.sweep(ctx)).request_log == 0
    clock.pass_seconds(2)
    assert (await cleanup.sweep(ctx)).request_log == 1
    assert await page(ctx) == []


async def test_a_request_is_not_kept_for_longer_than_the_content_of_messages(
    ctx: context.Context, clock: contexts.Clock
) -> None:
    retention = msgspec.structs.replace(ctx.settings.retention, body_days=2)
    ctx = dataclasses.replace(ctx, settings=msgspec.structs.replace(ctx.settings, retention=retention))
    logged_requests.note(ctx, "acc_1")
    await ctx.request_log.flush()
    clock.pass_seconds(2 * 86_400 - 1)
    assert (await cleanup.sweep(ctx)).request_log == 0
    clock.pass_seconds(2)
    assert (await cleanup.sweep(ctx)).request_log == 1


async def test_a_process_that_ends_writes_what_it_has_noted(ctx: context.Context) -> None:
    logged_requests.note(ctx, "acc_1")
    await contexts.concrete(ctx.request_log, request_log.RequestLog).close()
    async with ctx.store.reading() as tx:
        rows = await stored.page(tx, "acc_1", before="req_~", after="", status=0, below=600, caller_id="", limit=9)
    assert [row.error for row in rows] == ["the domain is not verified"]


def shown(document: object) -> object:
    return json.loads(request_log.shown_body(json.dumps(document).encode()))


@pytest.mark.parametrize(
    "name",
    "password new_password client_secret api_key key code Authorization reset_token otp "
    "apikey APIKEY apiKey resetCode passcode db_pwd".split(),
)
def test_what_is_named_like_a_secret_is_masked(name: str) -> None:
    assert shown({"data": [{name: {"deep": "hunter2"}}], "name": "shop"}) == {
        "data": [{name: "[secret]"}],
        "name": "shop",
    }


def test_what_looks_like_a_secret_is_masked_and_the_rest_is_not() -> None:
    assert shown({"text": "use pr_live_abcDEF123 now", "barcode": "7", "zipcode": "8", "monkey": 1, "key": None}) == {
        "text": "use [secret] now",
        "barcode": "7",
        "zipcode": "8",
        "monkey": 1,
        "key": None,
    }


def test_of_thousands_of_values_those_that_can_be_shown_are_looked_at() -> None:
    for document in ([0] * 30_000, [[0] * 100] * 300, {f"name{number}": "" for number in range(5_000)}):
        kept = request_log.shown_body(json.dumps(document).encode())
        assert kept.endswith("…".encode())
        assert kept.startswith(json.dumps(document, indent=2)[:4_000].encode())
    mask = request_log._Mask()
    assert len(mask.value([0] * 30_000)) == 999


def test_a_secret_in_the_name_of_a_member_is_masked() -> None:
    assert shown({"pr_live_abcDEF123": 1}) == {"[secret]": 1}


def test_long_texts_and_bodies_are_cut() -> None:
    assert shown({"html": "x" * 501, "to": "ada@example.net"}) == {"html": "x" * 500 + "…", "to": "ada@example.net"}
    cut = request_log.shown_body(json.dumps(["é" * 400] * 50).encode()).decode()
    assert (cut[-1], 4_000 < len(cut.encode()) < 4_100) == ("…", True)


@pytest.mark.parametrize("body", [b"", b"password=hunter2", b'{"password": "hunter2"', b"\xff", b"[" * 5_000])
def test_a_body_that_is_not_json_is_not_kept(body: bytes) -> None:
    assert request_log.shown_body(body) == b""


def test_a_path_has_no_secret_and_no_control_character(ctx: context.Context) -> None:
    request = msgspec.structs.replace(
        logged_requests.refused(ctx, "acc_1"), path=b"/emails/pr_live_abc\x07\x9b" + b"x" * 900
    )
    entry = request_log._entry(request)
    assert (entry.path[:24], len(entry.path)) == ("/emails/[secret]  xxxxxx", 200)


def test_no_body_with_a_password_is_kept_however_its_member_is_called(ctx: context.Context) -> None:
    request = logged_requests.refused(ctx, "acc_1", body=b'{"pasword": "hunter2"}')
    for path in ("/v1/auth/password", "/v1/%61uth/password"):
        kept = request_log._entry(msgspec.structs.replace(request, path=path.encode()))
        assert (kept.path, kept.body, kept.body_size) == (path, b"", 22)
