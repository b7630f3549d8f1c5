"""The service runs as a role of PostgreSQL that can read and write its rows, and nothing else (deploy/)."""

import asyncio
import contextlib
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import NamedTuple

import asyncpg
import pytest

from postroad import config
from postroad.model.people import callers
from postroad.roles import composition
from postroad.services.accounts import account_registry as accounts
from postroad.services.operations import cleanup, partitions
from postroad.services.people import users
from postroad.storage.engine import migrations, open_store, queries
from postroad.storage.operations import partitions as stored_partitions
from tests import contexts, next_migration, warm_processes
from tests.postgres_server import PostgresServer
from tests.reliability import service_process, whole_service

ROOT = Path(__file__).parents[2]
ROLES = (ROOT / "deploy" / "postgresql-roles.sql").read_text()
PASSWORD = "seven green bottles on a wall"
NEWEST = migrations.known("postgres")[-1].version
# Statements that are not asked for a plan; NOTIFY and advisory locks are in the whole service below.
NOT_EXPLAINED = {"migrations.create_table"}


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """A server of our own: roles belong to all databases of one."""
    with PostgresServer() as started:
        yield started


def run_file(server: PostgresServer, url: str) -> None:
    with contextlib.closing(server.administrator(url)) as administrator:
        administrator.execute(ROLES)


def as_role(url: str, role: str) -> str:
    return url.replace("://postgres@", f"://{role}@")


@pytest.fixture(scope="module")
def migrated(server: PostgresServer) -> str:
    """A database for tests that leave its tables as they are."""
    made = server.create_database()
    run_file(server, made)
    asyncio.run(migrate(made))
    server.execute("CREATE SCHEMA private; CREATE TABLE private.things (x INTEGER)", url=made)
    return made


@pytest.fixture
def url(server: PostgresServer) -> Iterator[str]:
    made = server.create_database()
    run_file(server, made)
    yield made
    server.drop_database(made)


async def migrate(url: str) -> None:
    opened = await open_store.open_store(as_role(url, "postroad_owner"), connections=1)
    try:
        await migrations.apply(opened)
    finally:
        await opened.close()


@contextlib.asynccontextmanager
async def connected(url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(as_role(url, "postroad_service"))
    try:
        yield connection
    finally:
        await connection.close()


async def test_mail_is_sent_delivered_and_reported_as_the_service_role(migrated: str, tmp_path: Path) -> None:
    service_url = as_role(migrated, "postroad_service")
    async with whole_service.running_service(tmp_path, service_url) as whole:
        await asyncio.gather(*(whole.accept(f"http-{number}", f"smtp-{number}") for number in range(5)))
        await whole.finished()
        await whole.prove()
        async with whole_service.open_context(service_url) as ctx:
            role = callers.Role.OWNER
            await users.create(ctx, whole.account_id, email="ada@example.com", password=PASSWORD, role=role)
        base = whole.service.base_url
        form = {"email": "ada@example.com", "password": PASSWORD}
        entered = await whole.client.post(f"{base}/login", data=form, headers={"Origin": base})
        assert entered.status_code == 303, entered.text
        for page in ("/", "/messages", "/domains", "/webhooks", "/suppressions", "/audit-log", "/team"):
            shown = await whole.client.get(f"{base}{page}", follow_redirects=True)
            assert shown.status_code == 200, page


async def test_old_rows_are_swept_as_the_service_role(migrated: str) -> None:
    async with service_process.inside(as_role(migrated, "postroad_service")) as ctx:
        await accounts.create(ctx, "Swept")
        await cleanup.sweep(ctx)


async def test_partitions_begin_and_are_dropped_as_the_service_role(url: str, server: PostgresServer) -> None:
    await migrate(url)
    clock = contexts.Clock()
    chosen = {
        "database": {"url": as_role(url, "postroad_service")},
        "security": {"installation_key": contexts.SECRET_KEY},
    }
    async with composition.open_context(config.load(environment={}, overrides=chosen), clock=clock) as ctx:
        assert await partitions.keep(ctx) == 2
        clock.pass_seconds(130 * 24 * 3600)
        assert await partitions.keep(ctx) == 4
        async with ctx.store.reading() as tx:
            assert await stored_partitions.is_permitted(tx)
    owners = "SELECT string_agg(DISTINCT tableowner, ',') FROM pg_tables WHERE tablename LIKE 'messages%'"
    async with connected(url) as connection:
        assert await connection.fetchval(owners) == "postroad_owner"
        assert await connection.fetchval("SELECT count(*) FROM pg_tables WHERE tablename LIKE 'messages%'") == 4


async def test_nobody_else_drops_partitions(url: str, server: PostgresServer) -> None:
    """A role that may enter and read everything is not enough."""
    await migrate(url)
    server.execute("CREATE ROLE auditor LOGIN")
    name = url.partition("?")[0].rpartition("/")[2]
    server.execute(f"GRANT CONNECT ON DATABASE {name} TO auditor")
    server.execute("GRANT USAGE ON SCHEMA public TO auditor; GRANT pg_read_all_data TO auditor", url=url)
    connection = await asyncpg.connect(as_role(url, "auditor"))
    try:
        assert await connection.fetchval("SELECT count(*) FROM messages") == 0
        for call in (
            "bound_mail_partitions(ARRAY['messages'], 'em_1')",
            "late_messages('em_1', 1)",
            "extend_mail_partitions(ARRAY['messages'], 'em_06600000000000')",
            "expire_mail_partitions(ARRAY['messages'], 'em_06600000000000', 1)",
            "lock_mail_tables(ARRAY['messages'])",
        ):
            with pytest.raises(asyncpg.InsufficientPrivilegeError, match="permission denied for function"):
                await connection.execute(f"SELECT {call}")
    finally:
        await connection.close()


async def test_every_query_is_permitted_to_the_service_role(migrated: str) -> None:
    refused = {}
    async with connected(migrated) as connection:
        for name, statement in queries.load("postgres").items():
            if name in NOT_EXPLAINED:
                continue
            try:
                await connection.execute(f"EXPLAIN (GENERIC_PLAN) {statement}")
            except asyncpg.InsufficientPrivilegeError as problem:
                refused[name] = str(problem)
            except asyncpg.PostgresError:
                pass  # a plan that needs the types of its arguments
    assert refused == {}


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE mine (x INTEGER)",
        "CREATE TEMPORARY TABLE mine (x INTEGER)",
        "CREATE SCHEMA mine",
        "ALTER TABLE messages ADD COLUMN x INTEGER",
        "DROP TABLE messages",
        "TRUNCATE messages",
        "CREATE INDEX ON messages (id)",
        "CREATE FUNCTION mine() RETURNS INTEGER LANGUAGE SQL AS 'SELECT 1'",
        "COPY messages TO PROGRAM 'cat'",
        "COPY messages FROM '/etc/passwd'",
        "CREATE ROLE other",
        "CREATE DATABASE other",
        "SET ROLE postroad_owner",
        "SELECT * FROM pg_authid",
        "SELECT * FROM private.things",
        "SELECT pg_read_file('/etc/passwd')",
        "ALTER SYSTEM SET fsync = off",
    ],
)
async def test_anything_but_rows_is_refused(migrated: str, statement: str) -> None:
    async with connected(migrated) as connection:
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await connection.execute(statement)


async def test_the_tables_of_another_database_cannot_be_read(url: str, server: PostgresServer) -> None:
    plain, other = server.create_database(), server.create_database()
    server.execute("CREATE TABLE things (x INTEGER)", url=plain)
    async with connected(plain) as connection:
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await connection.execute("SELECT * FROM things")
    name = other.partition("?")[0].rpartition("/")[2]
    server.execute(f"REVOKE CONNECT ON DATABASE {name} FROM PUBLIC")
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await asyncpg.connect(as_role(other, "postroad_service"))
    server.execute("CREATE ROLE stranger LOGIN")
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await asyncpg.connect(as_role(url, "stranger"))
    for database in (plain, other):
        server.drop_database(database)


async def test_a_later_migration_leaves_its_tables_usable(migrated: str, server: PostgresServer) -> None:
    server.execute("CREATE TABLE of_a_later_version (x INTEGER)", url=as_role(migrated, "postroad_owner"))
    async with connected(migrated) as connection:
        await connection.execute("INSERT INTO of_a_later_version VALUES (1)")
        assert await connection.fetchval("SELECT x FROM of_a_later_version") == 1


async def test_a_database_that_has_tables_already_is_taken_over(server: PostgresServer) -> None:
    url = server.create_database()
    opened = await open_store.open_current(url, connections=1, migrate=True)
    await opened.close()
    for _ in range(2):
        await asyncio.to_thread(run_file, server, url)
    async with connected(url) as connection:
        assert await connection.fetchval("SELECT COUNT(*) FROM accounts") == 0
        assert await connection.fetchval("SELECT tableowner FROM pg_tables WHERE tablename = 'accounts'") == (
            "postroad_owner"
        )
    async with service_process.inside(as_role(url, "postroad_service")) as ctx:
        await accounts.create(ctx, "Shop")
    server.drop_database(url)


class Ran(NamedTuple):
    """A command that has ended, and what it has said."""

    code: int
    printed: str
    logged: str


def command(server: PostgresServer, file: Path, *words: str) -> Ran:
    """Run `postroad`, with the programs of the server."""
    environment = service_process.environment()
    environment["PATH"] = f"{server._programs}:{environment['PATH']}"
    printed, logged = file.with_suffix(".printed"), file.with_suffix(".logged")
    for output in (printed, logged):
        output.write_bytes(b"")
    whole = [*words, "--config", str(file)]
    running = warm_processes.Command(whole, printed=printed, logged=logged, environment=environment)
    return Ran(running.wait(service_process.TIMEOUT_SECONDS), printed.read_text(), logged.read_text())


def configured(folder: Path, url: str, role: str) -> Path:
    file = folder / f"{role}.toml"
    key = "0123456789" * 5
    file.write_text(f'[database]\nurl = "{as_role(url, role)}"\n[security]\ninstallation_key = "{key}"\n')
    return file


def test_the_service_role_makes_backups_and_the_owner_restores_them(
    url: str, server: PostgresServer, tmp_path: Path
) -> None:
    owner, service = (configured(tmp_path, url, role) for role in ("postroad_owner", "postroad_service"))
    backup = str(tmp_path / "backup")
    assert command(server, owner, "migrate").code == 0
    assert command(server, service, "account", "create", "--name", "Shop").code == 0
    made = command(server, service, "backup", backup)
    assert made.code == 0, made.logged
    running = server.administrator(f"{as_role(url, 'postroad_service')}&application_name=postroad")
    with contextlib.closing(running):
        refused = command(server, owner, "restore", "--force", backup)
        assert "the database is in use" in refused.logged
    restored = command(server, owner, "restore", "--force", backup)
    assert restored.code == 0, restored.logged
    run_file(server, url)
    listed = command(server, service, "account", "list")
    assert (listed.code, "Shop" in listed.printed) == (0, True), listed.logged


def shell(server: PostgresServer, file: Path, words: str) -> subprocess.CompletedProcess[str]:
    """Run commands of the documentation, of which some run here as we do, and with this configuration."""
    program = f'{sys.executable} -m postroad "$@"'
    as_service = f"runuser() {{ shift 4; POSTROAD_CONFIG={file} {program}; }}"
    shims = f"postroad() {{ {program}; }}\n{as_service}\nsystemctl() {{ :; }}\n"
    environment = service_process.environment() | {
        "PATH": f"{server._programs}:{os.environ['PATH']}",
        "PGHOST": str(server._folder),
        "PGUSER": "postgres",
    }
    command = ["bash", "-euo", "pipefail", "-c", shims + words]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_the_page_about_postgresql_leads_from_an_empty_server_to_an_installation(
    server: PostgresServer, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The commands as they are there; only hosts, folders and passwords, which this server does not ask for, differ."""
    section = (ROOT / "docs" / "postgresql.md").read_text().partition("\n## Encrypt")[0]
    script = "\n".join(re.findall(r"```sh\n(.+?)```", section, re.DOTALL))
    script = re.sub(r".*\\password.*\n", "", script)
    script = script.replace("/usr/local/share/postroad", str(tmp_path_factory.mktemp("deploy")))
    script = re.sub(r":…@db.example.com/(\w+)", rf"@/\1?host={server._folder}", script)

    def run(words: str) -> subprocess.CompletedProcess[str]:
        return shell(server, tmp_path / "postroad.toml", words)

    *as_owner, init = script.rpartition("POSTROAD_DATABASE__URL=")
    ran = run("".join(as_owner).removesuffix("POSTROAD_DATABASE__URL="))
    assert ran.returncode == 0, ran.stderr
    assert "Migrated the schema from version 0 to " in ran.stdout
    refused = run("POSTROAD_DATABASE__URL=" + init.replace("postroad_service", "postroad_owner:secret"))
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr == (
        "Error: POSTROAD_DATABASE__URL: postroad_owner is for 'postroad migrate'; run that first, and then "
        "'postroad init' with the URL of postroad_service, which the service uses\n"
    )
    assert list(tmp_path.iterdir()) == []
    ran = run("POSTROAD_DATABASE__URL=" + init)
    assert ran.returncode == 0, ran.stderr
    assert "owner and operator you@example.com" in ran.stdout
    written = (tmp_path / "postroad.toml").read_text()
    assert ("postroad_service@" in written, "postroad_owner" in written) == (True, False)
    ran = run("runuser -u postroad -- postroad account list")
    assert "Example" in ran.stdout, ran.stderr


def test_the_page_about_postgresql_leads_from_sqlite_to_it_as_the_service_role(
    url: str, server: PostgresServer, tmp_path: Path
) -> None:
    """The commands as they are there, after the tables were created; the owner is not asked for."""
    file, service = tmp_path / "postroad.toml", configured(tmp_path, url, "postroad_service")
    file.write_text(
        re.sub(r"url = .*", f'url = "sqlite:///{tmp_path}/postroad.db"', service.read_text(encoding="utf-8"))
    )
    assert command(server, file, "account", "create", "--name", "Shop").code == 0
    section = (ROOT / "docs" / "postgresql.md").read_text().partition("\n## Move from SQLite\n")[2]
    (script,) = re.findall(r"```sh\n(.+?)```", section, re.DOTALL)
    script = re.sub(r"postgresql://postroad_service:…@[^']*", as_role(url, "postroad_service"), script)
    script = script.replace("/var/lib/postroad", str(tmp_path))
    asyncio.run(migrate(url))
    ran = shell(server, file, script)
    assert ran.returncode == 0, ran.stderr
    assert "The delivery of all mail is held" in ran.stdout
    listed = command(server, service, "account", "list")
    assert "Shop" in listed.printed, listed.logged
    refused = command(server, file, "serve")
    assert (refused.code, "the database is no longer in use" in refused.logged) == (1, True)
    assert "Released: all mail" in command(server, service, "queue", "release").printed


def test_serve_says_who_has_to_migrate(url: str, server: PostgresServer, tmp_path: Path) -> None:
    file = configured(tmp_path, url, "postroad_service")
    for word in ("serve", "migrate", "verify"):
        run = command(server, file, word)
        assert (run.code, run.printed) == (1, "")
        assert run.logged.splitlines()[-1] == (
            f"Error: the database schema is at version 0, but this version needs {NEWEST}, and the role of "
            "database.url may not change it (permission denied for schema public): run 'postroad migrate' with the URL "
            "of the role that owns the tables"
        )


async def test_a_schema_of_an_earlier_version_is_left_as_it_is(
    migrated: str, server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = server.create_database(like=migrated)
    next_migration.add(monkeypatch, "CREATE TABLE more (x INTEGER);")
    with pytest.raises(migrations.SchemaError) as refused:
        await open_store.open_current(as_role(url, "postroad_service"), connections=1, migrate=True)
    assert re.fullmatch(
        rf"the database schema is at version {NEWEST}, but this version needs {NEWEST + 1}, and the role of "
        r"database\.url may not change it \(.+\): run 'postroad migrate' with the URL of the role that owns the tables",
        str(refused.value),
    )
    server.drop_database(url)


def test_the_roles_are_named_on_the_page_about_postgresql() -> None:
    page = (ROOT / "docs" / "postgresql.md").read_text()
    for name in ("postgresql-roles.sql", "postroad_owner", "postroad_service", "sslmode=verify-full"):
        assert name in page
