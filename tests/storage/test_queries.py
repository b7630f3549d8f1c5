"""Every named query is used, every used name exists, and every query runs on both engines."""

import ast
import contextlib
import functools
import importlib
import inspect
import pkgutil
import re
from importlib import resources
from pathlib import Path
from typing import Any

import asyncpg
import pytest

import postroad
from postroad import storage
from postroad.storage.engine import open_store, queries
from postroad.storage.engine.sqlite import SqliteStore
from postroad.storage.engine.store import ConstraintViolated, Store
from postroad.storage.operations import consistency, installation_key, retention
from postroad.storage.people import users
from tests.storage.samples import words

SOURCE = Path(postroad.__file__).parent
# These run statements; everybody else asks for queries by their names.
ENGINES = {
    SOURCE / "storage" / "engine" / f"{name}.py"
    for name in ("sqlite", "sqlite_backup", "postgres", "postgres_backup", "postgres_connections", "queries")
}
ASKING = {"fetch", "fetch_one", "fetch_many", "execute", "execute_many", "execute_later"}
# The declarations, and how they ask.
DECLARING = {
    "row": "fetch_one",
    "rows": "fetch",
    "count": "fetch_one",
    "exists": "fetch_one",
    "change": "execute",
    "changes": "execute",
    "changed": "execute",
}
# A name that is put together in the code, and what it can become.
COMPOSED = {
    "account_removal.{}": [f"account_removal.{table}" for table in (*retention.ACCOUNT_TABLES, "idempotency_keys")],
    "consistency.{}": [f"consistency.{check}" for check in consistency.CHECKS],
    "encrypted_values.{}": [f"encrypted_values.{table}" for table in installation_key.ENCRYPTED_TABLES],
    "encrypted_values.replace_{}": [f"encrypted_values.replace_{table}" for table in installation_key.ENCRYPTED_TABLES],
}
# Once in the life of a database: the `store` of these tests has lived through it. Those about partitions change the
# schema of PostgreSQL (tests/services/operations/test_partitions.py).
RUN_ELSEWHERE = {
    "migrations.create_table",
    *(f"partitions.{name}" for name in ("bound", "expire", "is_bounded", "is_permitted", "late", "of_table")),
}
# Consistency checks read everything, and so do the views of operators. Holds are few.
READING_ALL = ("consistency.", "holds.", "queue_views.", "space.", "table_copy.", "webhook_views.")
WITHOUT_INDEX = words(
    {
        "reads a table of a few rows": """
            access_version.bump access_version.version acme.challenges acme.sweep disk_samples.sweep
            installation_key.fingerprint installation_key.lock installation_key.previous installation_key.replace
            installation_key.sweep_previous migrations.is_recorded migrations.version notices.unresolved
            operator_jobs.latest processes.seen_since processes.sweep provider_overrides.listed
            provider_overrides.sweep provider_queues.heard_since provider_queues.sweep source_states.listed
            source_states.sweep""",
        "reads a row of no table, or its own result": """
            account_removal.idempotency_keys accounts.uses_approvals clock.now login_failures.lock
            migrations.lock notices.insert
            queue.find_work queue.queue_keys queue.urgent_keys unsubscribes.lists
            webhook_deliveries.endpoints""",
        "sorts or groups the few rows of one owner, which it finds by an index": """
            attempts.latest_ends_of_message attempts.of_message dkim_keys.of_domain dkim_keys.of_domains
            dmarc_rows.reporters dmarc_rows.sources
            known_networks.remove_oldest queue.live_bytes recipients.leading_of_message recipients.of_address
            received_reports.results request_log.callers request_log.trim
            sessions.of_login sessions.of_user tls_report_rows.since users.accounts_of_login webhooks.of_account""",
        "adds up a few rows an hour, or so many of the newest": """
            failure_counts.by_provider hourly_counts.by_hour hourly_counts.by_provider
            hourly_counts.bytes_by_account hourly_counts.sums
            messages.test_bytes_by_account usage.by_tag usage.moved_by_quarter_hour usage.moved_since
            webhook_deliveries.summary""",
        "is a request, a check or a gauge of operators, or sorts entries of one moment for them": """
            accounts.low_credit_count accounts.low_on_credits accounts.search audit_log.floor_of_all
            audit_log.page_of_all second_factors.operators_without users.operators
            webhooks.formats""",
        "is maintenance: once a minute or less, after a restore, or when an account is removed": """
            account_removal.rates mta_sts_policies.trim queue.end_leases rates.sweep
            webhook_deliveries.sweep_undelivered""",
        "reads an index of the queue along its order, for a limit": "queue.totals_by_account",
        "asks each account for the rare asynchronous bounce": "messages.account_of",
    }
)
BATCHED = {"fetch_many", "execute_many", "execute_later"}
DIALECTS = ("sqlite", "postgres")

SAMPLES: dict[str, Any] = {"text": "x", "bool": True, "int8": 1, "int4": 1, "bytea": b"x"}


@functools.cache
def asked() -> list[tuple[str, str]]:
    """The name of each query that the code asks, and the method that asks it."""
    return [(name, "execute") for name in users.OF_A_LOGIN] + [
        (name, DECLARING.get(node.func.attr, node.func.attr))
        for path in set(SOURCE.rglob("*.py")) - ENGINES
        if "tx." in (text := path.read_text(encoding="utf-8")) or "queries." in text
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and asks(node.func)
        for name in (names_of(node.args[0]) if node.args else ())
    ]


def asks(function: ast.Attribute) -> bool:
    is_declaration = isinstance(function.value, ast.Name) and function.value.id == "queries"
    return function.attr in (DECLARING if is_declaration else ASKING)


def names_of(argument: ast.expr) -> list[str]:
    if isinstance(argument, ast.Constant):
        return [str(argument.value)]
    if isinstance(argument, ast.JoinedStr):
        pattern = "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in argument.values)
        return COMPOSED[pattern]
    return []


def test_every_query_that_the_code_asks_exists() -> None:
    known = queries.load("sqlite")
    assert [name for name, _ in asked() if name not in known] == []


def test_every_query_that_exists_is_asked() -> None:
    names = {name for name, _ in asked()}
    assert sorted(queries.load("sqlite").keys() - names) == []


def test_queries_of_batches_take_arrays_on_postgres() -> None:
    overrides = {
        name
        for file in resources.files("postroad.storage").joinpath("sql").iterdir()
        if file.name.endswith(".postgres.sql")
        for name in queries.parse(file.name.partition(".")[0], file.read_text(encoding="utf-8"))
    }
    assert sorted({name for name, method in asked() if method in BATCHED} - overrides) == []


def test_a_declaration_has_a_parameter_for_every_placeholder() -> None:
    declared = [
        function
        for module in pkgutil.walk_packages(storage.__path__, "postroad.storage.")
        for function in vars(importlib.import_module(module.name)).values()
        if hasattr(function, "query")
    ]
    assert len(declared) > 200
    for dialect in DIALECTS:
        known = queries.load(dialect)
        for function in declared:
            places = {int(place) for place in re.findall(r"\$(\d+)", known[function.query])}
            parameters = len(inspect.signature(function).parameters) - 1
            assert places == set(range(1, parameters + 1)), function.query


def test_every_query_is_described() -> None:
    for dialect in DIALECTS:
        for name, statement in queries.load(dialect).items():
            description, _, text = statement.partition("\n")
            assert description.startswith("-- "), name
            assert text.endswith(";"), name
            assert text.count(";") == 1, name


def test_overrides_belong_to_an_engine_that_exists() -> None:
    files = [file.name.split(".")[1:-1] for file in resources.files("postroad.storage").joinpath("sql").iterdir()]
    assert sorted({suffix for parts in files for suffix in parts}) == ["postgres"]


@pytest.fixture
async def arguments(postgres_url: str) -> dict[str, list[Any]]:
    """An argument of the right type for every placeholder, as PostgreSQL says; batches are of one row."""
    store = await open_store.open_current(postgres_url, migrate=True)
    await store.close()
    connection = await asyncpg.connect(postgres_url)
    found = {}
    for name, statement in queries.load("postgres").items():
        if name in RUN_ELSEWHERE:
            continue
        parameters = (await connection.prepare(statement)).get_parameters()
        found[name] = [SAMPLES[parameter.name.removesuffix("[]")] for parameter in parameters]
    await connection.close()
    return found


async def test_every_query_runs(store: Store, arguments: dict[str, list[Any]]) -> None:
    methods = dict(asked())
    for name in queries.load(store.dialect).keys() - RUN_ELSEWHERE:
        row = arguments[name]
        rows = [[row]] if methods[name] in BATCHED else row
        with contextlib.suppress(ConstraintViolated):  # it did run, but a sample is no status, no kind and no role
            async with store.transaction() as tx:
                await getattr(tx, methods[name])(name, *rows)


def test_every_query_finds_its_rows_by_an_index(sqlite_store: SqliteStore) -> None:
    """Checked with SQLite's plans; the indexes are the same on PostgreSQL."""
    planned = {name: plan(sqlite_store, name) for name in sqlite_store._statements.keys() - RUN_ELSEWHERE}
    scanned = {name for name, steps in planned.items() if any(step.startswith("SCAN") for step in steps)}
    sorted_apart = {name for name, steps in planned.items() if any("TEMP B-TREE" in step for step in steps)}
    assert {name for name in scanned | sorted_apart if not name.startswith(READING_ALL)} == WITHOUT_INDEX


def test_no_query_reads_all_mail_of_an_account(sqlite_store: SqliteStore) -> None:
    """Where the account is all that SQLite searches by, the first rows of a list in this order are enough."""
    by_account = re.compile(r"SEARCH (messages|recipients|attempts) USING .*\(account_id=\?\)$")
    known = sqlite_store._statements.keys() - RUN_ELSEWHERE
    read = {name for name in known if any(by_account.match(step) for step in plan(sqlite_store, name))}
    assert {name for name in read if not name.startswith(READING_ALL)} == {
        "attempts.latest_refused",
        "retention.messages_of",
    }


def test_the_oldest_recipient_of_an_account_is_found_by_an_index(sqlite_store: SqliteStore) -> None:
    steps = plan(sqlite_store, "queue_views.first")
    # What is chosen first is one row, which is then walked through.
    harmless = ("SEARCH", "CORRELATED", "CO-ROUTINE queue", "SCAN queue")
    assert all(step.startswith(harmless) for step in steps), steps
    assert any(step.startswith("SEARCH queue USING") for step in steps), steps


def plan(store: SqliteStore, name: str) -> list[str]:
    statement = store._statements[name]
    places = {int(place) for place in re.findall(r"\?(\d+)", statement)}
    rows = store._writer.execute(f"EXPLAIN QUERY PLAN {statement}", (None,) * len(places)).fetchall()
    return [str(row[3]) for row in rows]


def test_names_are_the_file_and_the_query() -> None:
    text = "-- a word about the file\n-- name: one\n-- First.\nSELECT 1;\n\n-- name: two\n-- Second.\nSELECT $1;\n"
    assert queries.parse("file", text) == {"file.one": "-- First.\nSELECT 1;", "file.two": "-- Second.\nSELECT $1;"}
    assert queries.parse("file", "no query here") == {}


def test_a_query_that_is_there_twice_is_refused() -> None:
    with pytest.raises(LookupError, match="twice"):
        queries.parse("file", "-- name: one\nSELECT 1;\n-- name: one\nSELECT 2;\n")


def test_an_include_stands_for_the_part_of_its_file() -> None:
    text = """-- part: filters
    AND a = $1
    AND b = $2

-- name: one
-- First.
SELECT 1 WHERE TRUE
    -- include: filters
LIMIT 1;

-- name: two
-- Second.
SELECT 2 WHERE FALSE
-- include: filters
;
"""
    assert queries.parse("file", text) == {
        "file.one": "-- First.\nSELECT 1 WHERE TRUE\n    AND a = $1\n    AND b = $2\nLIMIT 1;",
        "file.two": "-- Second.\nSELECT 2 WHERE FALSE\n    AND a = $1\n    AND b = $2\n;",
    }


@pytest.mark.parametrize(
    "text, problem",
    [
        ("-- name: one\nSELECT 1\n-- include: filters\n;\n", r"file: include of a part .* not exist: \['filters'\]"),
        ("-- part: a\nx\n-- part: a\ny\n", "file: part 'a' is defined twice"),
        ("-- part: a\nx\n-- part: b\n-- include: a\n", "file: part 'b' includes another one"),
    ],
)
def test_a_wrong_include_is_refused(text: str, problem: str) -> None:
    with pytest.raises(LookupError, match=problem):
        queries.parse("file", text)


def test_every_include_is_resolved_and_every_part_included() -> None:
    for dialect in DIALECTS:
        assert [name for name, text in queries.load(dialect).items() if "-- include" in text or "-- part" in text] == []
    for file in resources.files("postroad.storage").joinpath("sql").iterdir():
        text = file.read_text(encoding="utf-8")
        parts, includes = (set(re.findall(rf"-- {word}: (\w+)", text)) for word in ("part", "include"))
        assert parts == includes, file.name


def test_an_override_replaces_only_what_it_names() -> None:
    sqlite, postgres = queries.load("sqlite"), queries.load("postgres")
    assert sqlite.keys() == postgres.keys()
    assert sqlite["accounts.lock"] != postgres["accounts.lock"]
    assert sqlite["accounts.by_id"] == postgres["accounts.by_id"]


@pytest.mark.usefixtures("real_files")
def test_an_override_of_nothing_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "sql"
    folder.mkdir()
    (folder / "accounts.sql").write_text("-- name: one\n-- First.\nSELECT 1;\n")
    (folder / "accounts.postgres.sql").write_text("-- name: eins\n-- First.\nSELECT 1;\n")
    (folder / "accounts.sql.orig").write_text("left by an editor")
    monkeypatch.setattr(resources, "files", lambda _package: tmp_path)
    assert list(queries.load("sqlite")) == ["accounts.one"]
    with pytest.raises(LookupError, match=r"accounts\.eins"):
        queries.load("postgres")
