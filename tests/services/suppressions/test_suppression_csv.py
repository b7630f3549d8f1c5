"""Suppressed addresses as CSV: every list is read back from its own file, and a bad file changes nothing."""

import asyncio
import csv
import io
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies

from postroad import context, errors
from postroad.protocol.mime import address
from postroad.protocol.text import csv_rows
from postroad.services import throttled_batches
from postroad.services.accounts import account_registry as services_accounts
from postroad.services.suppressions import suppression_csv, suppression_list
from postroad.storage.mail import suppressions as stored

HEAD = b"email,source,reason,smtp_code,message_id,created_at,list\r\n"
# What a spreadsheet takes for the beginning of a formula.
ACTIVE = "=+-@\t\r\n\uff1d\uff0b\uff0d\uff20"


async def put(ctx: context.Context, account_id: str, *rows: tuple[str, str]) -> None:
    """Addresses and reasons, as a destination's replies leave them."""
    bounced = [
        stored.Suppression(account_id, key, stored.Source.BOUNCE, reason, 550, "em_1", ctx.clock())
        for key, reason in rows
    ]
    async with ctx.store.transaction() as tx:
        await stored.add(tx, bounced)


async def exported(ctx: context.Context, account_id: str) -> bytes:
    return b"".join([part async for part in suppression_csv.export(ctx, account_id)])


async def listed(ctx: context.Context, account_id: str) -> list[tuple[str, str, str]]:
    page = await suppression_list.page(ctx, account_id, after="", limit=1000)
    return [(one.email_key, one.source, one.reason) for one in page]


async def refusal(ctx: context.Context, account_id: str, content: bytes) -> str:
    with pytest.raises(errors.InvalidRequest) as raised:
        await suppression_csv.import_csv(ctx, account_id, content)
    assert await listed(ctx, account_id) == []
    return raised.value.message


async def test_an_export_has_everything_of_the_account_and_nothing_of_others(
    ctx: context.Context, account_id: str
) -> None:
    other = await services_accounts.create(ctx, name="Other")
    await put(ctx, other.id, ("theirs@example.net", "x"))
    assert await exported(ctx, account_id) == HEAD
    await put(ctx, account_id, ("b@example.net", 'said "no", twice'), ("a@example.net", "Grüße"))
    assert (await exported(ctx, account_id)).decode() == (
        HEAD.decode()
        + "a@example.net,bounce,Grüße,550,em_1,2027-01-15T08:00:00.000Z,\r\n"
        + 'b@example.net,bounce,"said ""no"", twice",550,em_1,2027-01-15T08:00:00.000Z,\r\n'
    )


async def test_an_export_is_written_page_by_page(
    ctx: context.Context, account_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(suppression_csv, "PAGE_ROWS", 2)
    for count in range(1, 6):
        await put(ctx, account_id, (f"{count}@example.net", "x"))
        parts = [part async for part in suppression_csv.export(ctx, account_id)]
        assert len(parts) == (count + 1) // 2
        assert all(parts)
        assert len(b"".join(parts).splitlines()) == 1 + count


async def test_an_export_comes_back_right_in_another_account(ctx: context.Context, account_id: str) -> None:
    rows = [
        (f"{local}@example.net", reason)
        for local, reason in zip(
            ("=cmd", "+1", "-1", "'", "''+x", "'=x", "plain", "jürgen"),
            ('=HYPERLINK("x")', "+1", "-1", "@x", "'@x", "''", "a,b;c", "Grüße"),
            strict=True,
        )
    ]
    await put(ctx, account_id, *rows)
    content = await exported(ctx, account_id)
    for row in csv.reader(io.StringIO(content.decode(), newline="")):
        assert not any(cell.startswith(tuple(ACTIVE)) for cell in row)
    other = await services_accounts.create(ctx, name="Other")
    assert await suppression_csv.import_csv(ctx, other.id, content) == suppression_csv.Imported(len(rows), 0)
    assert await listed(ctx, other.id) == [(key, "import", reason) for key, reason in sorted(rows)]
    assert await suppression_csv.import_csv(ctx, other.id, content) == suppression_csv.Imported(0, len(rows))


async def test_those_who_left_a_list_are_in_the_file_and_come_back(
    ctx: context.Context, account_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(suppression_csv, "PAGE_ROWS", 2)
    await put(ctx, account_id, ("ada@example.net", "x"))
    left = [("=news", "ada@example.net"), ("=news", "bob@example.net"), ("tips", "ada@example.net")]
    for list_name, email in left:
        await suppression_list.add(ctx, account_id, email, list_name=list_name)
    content = await exported(ctx, account_id)
    assert content.decode() == (
        HEAD.decode()
        + "ada@example.net,bounce,x,550,em_1,2027-01-15T08:00:00.000Z,\r\n"
        + "ada@example.net,account,,,,2027-01-15T08:00:00.000Z,'=news\r\n"
        + "bob@example.net,account,,,,2027-01-15T08:00:00.000Z,'=news\r\n"
        + "ada@example.net,account,,,,2027-01-15T08:00:00.000Z,tips\r\n"
    )
    other = await services_accounts.create(ctx, name="Other")
    assert await suppression_csv.import_csv(ctx, other.id, content) == suppression_csv.Imported(4, 0)
    assert await listed(ctx, other.id) == [("ada@example.net", "import", "x")]
    rows = await suppression_list.page_of_lists(ctx, other.id, after=("", ""), limit=10)
    assert [(row.list_name, row.email_key) for row in rows] == left
    assert await suppression_csv.import_csv(ctx, other.id, content) == suppression_csv.Imported(0, 4)


async def test_a_list_in_a_file_has_the_name_of_one(ctx: context.Context, account_id: str) -> None:
    said = await refusal(ctx, account_id, f"email,list\nada@example.net,{'x' * 129}\n".encode())
    assert said.startswith("line 2: list: must be 1 to 128 characters")


LOCALS = strategies.text(alphabet="abc=+-'{}!#$%&*/^_`|~?.", min_size=1, max_size=10)


@hypothesis.given(LOCALS)
def test_every_address_comes_back_from_a_file(local: str) -> None:
    email = f"{local}@example.net"
    try:
        key = address.parse(email).key
    except address.AddressError:
        hypothesis.reject()
    exported = csv_rows.lines([suppression_csv.COLUMNS, [key, "", "", "", "", "", ""]])
    assert suppression_csv._read(exported, suppression_csv.CALLER_LIMITS) == ({(key, ""): "imported"}, 1)
    written = f'email\n"{key}"\n'.encode()
    assert suppression_csv._read(written, suppression_csv.CALLER_LIMITS) == ({(key, ""): "imported"}, 1)


@pytest.mark.parametrize("head", [b"", b"email\n", b"source,reason,smtp_code,message_id,created_at,email\n"])
async def test_an_apostrophe_belongs_to_the_address_except_in_an_export(
    ctx: context.Context, account_id: str, head: bytes
) -> None:
    is_export = head.count(b",") == 5
    await suppression_csv.import_csv(ctx, account_id, head + b"," * head.count(b",") + b"'-x@example.net\n")
    (found,) = await listed(ctx, account_id)
    assert found[0] == ("-x@example.net" if is_export else "'-x@example.net")


@pytest.mark.parametrize(
    "content",
    [
        b"email\nada@example.net\nBob@Example.NET\n",
        b"\xef\xbb\xbfemail\r\nada@example.net\r\nbob@example.net",
        b"Email\r\rada@example.net\rbob@example.net\r",
        b"ada@example.net\nbob@example.net\n",
        b'\n  ada@example.net  \n\n"bob@example.net"\n \n',
        b"created_at, email ,source\n2026-01-01,ada@example.net,bounce\n,bob@example.net,\n",
        b"ada@example.net\nADA@EXAMPLE.NET\nbob@example.net\n",
    ],
)
async def test_files_come_in_many_writings(ctx: context.Context, account_id: str, content: bytes) -> None:
    imported = await suppression_csv.import_csv(ctx, account_id, content)
    assert imported.added == 2
    assert imported.added + imported.unchanged == content.lower().count(b"@example.net")
    assert await listed(ctx, account_id) == [
        ("ada@example.net", "import", "imported"),
        ("bob@example.net", "import", "imported"),
    ]


async def test_reasons_are_kept_and_the_first_one_stays(ctx: context.Context, account_id: str) -> None:
    await put(ctx, account_id, ("old@example.net", "no such user"))
    content = b'email,reason\nold@example.net,x\na@example.net,"two\r\nlines"\nb@example.net,\nA@example.net,other\n'
    assert await suppression_csv.import_csv(ctx, account_id, content) == suppression_csv.Imported(2, 2)
    assert await listed(ctx, account_id) == [
        ("a@example.net", "import", "two  lines"),
        ("b@example.net", "import", "imported"),
        ("old@example.net", "bounce", "no such user"),
    ]


async def test_a_long_file_goes_down_in_several_transactions(
    ctx: context.Context, account_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(suppression_list, "BATCH_ROWS", 3)
    content = "".join(f"{number}@example.net\n" for number in range(7)).encode()
    batches: list[int] = []
    run_batch = throttled_batches.run_batch

    async def counted(ctx: context.Context, work: Any) -> list[stored.SuppressionKey]:  # noqa: ANN401 - passed on
        added: list[stored.SuppressionKey] = await run_batch(ctx, work)
        batches.append(len(added))
        return added

    monkeypatch.setattr(throttled_batches, "run_batch", counted)
    assert await suppression_csv.import_csv(ctx, account_id, content) == suppression_csv.Imported(7, 0)
    assert batches == [3, 3, 1]
    assert len(await listed(ctx, account_id)) == 7


async def test_an_account_imports_one_file_at_a_time_and_a_process_two(ctx: context.Context, account_id: str) -> None:
    others = [await services_accounts.create(ctx, name) for name in ("b", "c")]
    content = b"ada@example.net\n"
    asked = [account_id, account_id, *(one.id for one in others)]
    results = await asyncio.gather(
        *(suppression_csv.import_csv(ctx, one, content) for one in asked), return_exceptions=True
    )
    assert [type(result) for result in results] == [suppression_csv.Imported, errors.RateLimited] * 2
    assert isinstance(results[1], errors.RateLimited)
    assert results[1].message == "imports: at most 1 at once per account; wait until one has finished"
    assert results[1].retry_after == 5
    assert (await suppression_csv.import_csv(ctx, others[1].id, content)).added == 1


@pytest.mark.parametrize(
    "content, sentence",
    [
        (b"", "body: the file is empty"),
        (b"\xef\xbb\xbf\r\n \r\n", "body: the file is empty"),
        ("email\nada@example.net\n".encode("utf-16"), "body: the file is not UTF-8; save it as CSV in UTF-8"),
        (b"email;reason\nada@example.net;x\n", "line 1: must name the columns, separated by commas"),
        (b"ada@example.net,x\n", "line 1: must name the columns"),
        (b"\n\nname\nAda\n", "line 3: must name the columns"),
        (b"email,raeson\nada@example.net,x\n", "line 1: unknown column 'raeson'; use email, source, reason,"),
        (b"email,email\nada@example.net,x\n", "line 1: the column email occurs twice"),
        (b"email\nada@example.net\nbob@\n", "line 3: 'bob@' is not an email address: nothing follows the '@'"),
        (b"email,reason\nada@example.net\n", "line 2: 1 cells, expected 2"),
        (b"ada@example.net\nbob@example.net,x\n", "line 2: 2 cells, expected 1"),
        (b'email\n"ada@example.net\n', "line 2: unbalanced quotes, or a cell is too long"),
        (b"email\n" + b"x" * 200_000, "line 2: unbalanced quotes, or a cell is too long"),
        (b"email,reason\nada@example.net," + b"x" * 4_001, "line 2: reason: at most 4000 characters"),
        (b"email\na@example.net\0\n", "line 2: 'a@example.net\\x00' is not an email address"),
    ],
)
async def test_a_bad_file_is_refused_by_its_line_and_changes_nothing(
    ctx: context.Context, account_id: str, content: bytes, sentence: str
) -> None:
    assert (await refusal(ctx, account_id, content)).startswith(sentence)


async def test_the_first_few_problems_are_reported(ctx: context.Context, account_id: str) -> None:
    few = await refusal(ctx, account_id, b"email\nada@example.net\n" + b"x\n" * 5)
    assert [part.partition(":")[0] for part in few.split("; ")] == [f"line {number}" for number in range(3, 8)]
    many = await refusal(ctx, account_id, b"email\n" + b"x\n" * 50_000)
    assert many.endswith("; and more")
    assert many.count("line ") == 5


async def test_a_file_is_bounded_in_rows_and_bytes(ctx: context.Context, account_id: str) -> None:
    three = b"a@example.net\nb@example.net\nc@example.net\n"
    long = b"a@example.net\n" * (100_000 + 1)
    assert await refusal(ctx, account_id, long) == "body: at most 100000 addresses per import; split the file"
    bounds = suppression_csv.FileLimits(3, len(three))
    assert (await suppression_csv.import_csv(ctx, account_id, three, limits=bounds)).added == 3
    with pytest.raises(errors.PayloadTooLarge):
        await suppression_csv.import_csv(ctx, account_id, three + b"\n", limits=bounds)
