"""`/v1/suppressions`: read, added to, taken off and carried in files, by who may and in their own account only."""

from typing import get_args
from urllib import parse

import httpx
import pytest

from postroad import context
from postroad.api.v1 import suppressions
from postroad.services import audit_log
from postroad.services.suppressions import suppression_csv
from postroad.storage.mail import suppressions as stored
from tests.api.management import AccountClients

CSV = {"Content-Type": "text/csv; charset=utf-8"}
HEAD = "email,source,reason,smtp_code,message_id,created_at,list\r\n"


async def put(ctx: context.Context, account_id: str, *keys: str, source: stored.Source = stored.Source.BOUNCE) -> None:
    async with ctx.store.transaction() as tx:
        rows = [stored.Suppression(account_id, key, source, "no such user", 550, "em_1", ctx.clock()) for key in keys]
        await stored.add(tx, rows)


def path_of(email: str) -> str:
    return f"/v1/suppressions/{parse.quote(email, safe='')}"


def refused(response: httpx.Response, status: int, code: str) -> str:
    assert (response.status_code, response.json()["code"]) == (status, code)
    return str(response.json()["error"])


async def test_an_address_is_listed_with_the_reply_that_caused_it(ctx: context.Context, mine: AccountClients) -> None:
    await put(ctx, mine.account_id, "ada@example.net")
    listed = await mine.reader.get("/v1/suppressions")
    one = {
        "email": "ada@example.net",
        "source": "bounce",
        "reason": "no such user",
        "smtp_code": 550,
        "message_id": "em_1",
        "created_at": "2027-01-15T08:00:00.000Z",
    }
    request_id = listed.headers["x-request-id"]
    assert listed.json() == {"suppressions": [one], "next_cursor": None, "request_id": request_id}
    assert (await mine.reader.get(path_of("ADA@Example.net"))).json()["suppression"] == one


async def test_the_list_comes_in_parts_and_by_filter(
    ctx: context.Context, mine: AccountClients, theirs: AccountClients
) -> None:
    keys = ["+b@example.net", "a@example.net", "c@example.net", "ü@example.net"]
    await put(ctx, mine.account_id, *keys)
    await put(ctx, theirs.account_id, "b@example.net")
    await mine.owner.post("/v1/suppressions", json={"email": "Own@example.net"})
    seen: list[str] = []
    cursor: dict[str, str | None] = {}
    for _ in range(5):
        # As it stands in the answer: a cursor needs no quoting.
        more = f"&cursor={cursor['next']}" if cursor else ""
        page = (await mine.owner.get(f"/v1/suppressions?limit=1{more}")).json()
        seen += [one["email"] for one in page["suppressions"]]
        cursor = {"next": page["next_cursor"]}
    assert (seen, cursor["next"]) == (sorted([*keys, "own@example.net"]), None)
    for query, found in {
        "source=account": ["own@example.net"],
        "source=import": [],
        "email=A@Example.NET": ["a@example.net"],
        "email=a@example.net&source=bounce": ["a@example.net"],
        "email=a@example.net&source=account": [],
        "email=b@example.net": [],
        "email=%2Bb@example.net": ["+b@example.net"],
        f"email=a@example.net&cursor={b'a@example.net'.hex()}": [],
    }.items():
        page = (await mine.owner.get(f"/v1/suppressions?{query}")).json()
        assert [one["email"] for one in page["suppressions"]] == found, query
        assert page["next_cursor"] is None
    for query, field in {"email=x": "email", "source=rumour": "source", "cursor=A": "cursor"}.items():
        answer = await mine.owner.get(f"/v1/suppressions?{query}")
        assert refused(answer, 400, "invalid_request").startswith(f"{field}: ")


async def test_an_address_is_put_on_once_and_taken_off_in_any_writing(mine: AccountClients) -> None:
    body = {"email": "Ada/1@BÜCHER.example", "reason": "asked to"}
    made = await mine.owner.post("/v1/suppressions", json=body)
    assert made.status_code == 201
    one = made.json()["suppression"]
    assert (one["email"], one["source"], one["reason"]) == ("ada/1@xn--bcher-kva.example", "account", "asked to")
    assert (one["smtp_code"], one["message_id"]) == (None, None)
    again = await mine.owner.post("/v1/suppressions", json=body)
    assert refused(again, 409, "conflict").startswith("email: ada/1@xn--bcher-kva.example is already suppressed")
    assert (await mine.owner.delete(path_of("ADA/1@bücher.example"))).status_code == 204
    assert refused(await mine.owner.delete(path_of("ada/1@bücher.example")), 404, "not_found")
    assert (await mine.owner.post("/v1/suppressions", json={"email": "b@example.net"})).json()["suppression"][
        "reason"
    ] == "added by the account"


@pytest.mark.parametrize(
    "body, field",
    [
        ({}, "email"),
        ({"email": "ada@"}, "email"),
        ({"email": "ada@example.net", "reason": ""}, "reason"),
        ({"email": "ada@example.net", "reason": "x" * 201}, "reason"),
        ({"email": "ada@example.net", "reason": "two\nlines"}, "reason"),
        ({"email": "ada@example.net", "source": "bounce"}, "source"),
        ({"email": "ada@example.net", "list": ""}, "list"),
        ({"email": "ada@example.net", "list": "two\nlines"}, "list"),
        ({"email": "ada@example.net", "account_id": "acc_1"}, "account_id"),
    ],
)
async def test_a_bad_body_is_refused_by_its_member(mine: AccountClients, body: dict[str, str], field: str) -> None:
    assert field in refused(await mine.owner.post("/v1/suppressions", json=body), 400, "invalid_request")
    assert (await mine.owner.get("/v1/suppressions")).json()["suppressions"] == []


@pytest.mark.parametrize("source", stored.Source)
async def test_an_account_lifts_any_suppression_of_its_own_list(
    ctx: context.Context, mine: AccountClients, source: stored.Source
) -> None:
    await put(ctx, mine.account_id, "ada@example.net", source=source)
    assert (await mine.owner.delete(path_of("ada@example.net"))).status_code == 204
    assert (await mine.reader.get(path_of("ada@example.net"))).status_code == 404
    entries = await audit_log.page(ctx, mine.account_id, before=None, limit=20)
    (entry,) = [one for one in entries if one.action == "suppression.removed"]
    assert (entry.subject, entry.actor_kind) == ("ada@example.net", "person")


async def test_a_list_has_its_own_entries(mine: AccountClients, theirs: AccountClients) -> None:
    path = path_of("ada@example.net")
    made = await mine.owner.post("/v1/suppressions", json={"email": "Ada@Example.net", "list": "news & tips"})
    entry = {
        "email": "ada@example.net",
        "source": "account",
        "reason": "",
        "smtp_code": None,
        "message_id": None,
        "created_at": "2027-01-15T08:00:00.000Z",
        "list": "news & tips",
    }
    assert (made.status_code, made.json()["suppression"]) == (201, entry)
    again = await mine.owner.post("/v1/suppressions", json={"email": "ada@example.net", "list": "news & tips"})
    refused(again, 409, "conflict")
    listed = await mine.reader.get("/v1/suppressions", params={"list": "news & tips"})
    assert listed.json()["suppressions"] == [entry]
    for params in ({"list": "news & tips", "source": "account"}, {"list": "news & tips", "email": "ADA@example.net"}):
        assert (await mine.reader.get("/v1/suppressions", params=params)).json()["suppressions"] == [entry]
    for params in ({}, {"list": "tips"}, {"list": "news & tips", "source": "page"}, {"email": "ada@example.net"}):
        assert (await mine.reader.get("/v1/suppressions", params=params)).json()["suppressions"] == []
    assert (await mine.reader.get(path, params={"list": "news & tips"})).json()["suppression"] == entry
    refused(await mine.reader.get(path), 404, "not_found")
    for other in (theirs.owner.get, theirs.owner.delete):
        refused(await other(path, params={"list": "news & tips"}), 404, "not_found")
    assert (await theirs.owner.get("/v1/suppressions", params={"list": "news & tips"})).json()["suppressions"] == []
    refused(await mine.owner.delete(path), 404, "not_found")
    assert (await mine.owner.delete(path, params={"list": "news & tips"})).status_code == 204
    refused(await mine.owner.delete(path, params={"list": "news & tips"}), 404, "not_found")
    refused(await mine.owner.delete(path, params={"list": "a\0"}), 404, "not_found")


async def test_an_export_is_a_file_that_can_be_imported_elsewhere(
    ctx: context.Context, mine: AccountClients, theirs: AccountClients, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(suppression_csv, "PAGE_ROWS", 2)
    await put(ctx, mine.account_id, "=cmd@example.net", "ada@example.net", "bob@example.net")
    exported = await mine.reader.get("/v1/suppressions/export")
    assert exported.status_code == 200
    assert exported.headers["content-type"] == "text/csv; charset=utf-8"
    assert exported.headers["content-disposition"] == 'attachment; filename="suppressions.csv"'
    assert exported.headers["cache-control"] == "no-store"
    assert exported.headers["x-request-id"].startswith("req_")
    lines = exported.text.splitlines()
    assert [line.partition(",")[0] for line in lines] == [
        "email",
        "'=cmd@example.net",
        "ada@example.net",
        "bob@example.net",
    ]
    assert (await theirs.reader.get("/v1/suppressions/export")).text == HEAD
    imported = await theirs.owner.post("/v1/suppressions/import", content=exported.content, headers=CSV)
    request_id = imported.headers["x-request-id"]
    assert imported.json() == {"added": 3, "unchanged": 0, "request_id": request_id}
    (first, *_) = (await theirs.owner.get("/v1/suppressions")).json()["suppressions"]
    assert (first["email"], first["source"], first["reason"]) == ("=cmd@example.net", "import", "no such user")


async def test_a_bad_file_changes_nothing(mine: AccountClients) -> None:
    async def send(content: bytes, **headers: str) -> httpx.Response:
        return await mine.owner.post("/v1/suppressions/import", content=content, headers={**CSV, **headers})

    good = b"email\nada@example.net\n"
    assert refused(await send(good + b"x\n"), 400, "invalid_request").startswith("line 3: 'x' is not an email address")
    assert refused(await send(b""), 400, "invalid_request") == "body: the file is empty"
    wrong = await send(good, **{"Content-Type": "application/json"})
    assert refused(wrong, 400, "invalid_request") == "Content-Type: must be text/csv"
    packed = await send(good, **{"Content-Encoding": "gzip"})
    assert refused(packed, 400, "invalid_request").startswith("Content-Encoding: ")
    large = await send(b"email\n" + b" " * (10 * 1024 * 1024))
    assert refused(large, 413, "payload_too_large") == "body: at most 10485760 bytes"
    assert (await mine.owner.get("/v1/suppressions")).json()["suppressions"] == []


def test_every_source_is_a_word_of_the_document() -> None:
    words, _ = get_args(suppressions.SuppressionSource)
    assert get_args(words) == tuple(one.value for one in (*stored.Source, *stored.ListSource))
