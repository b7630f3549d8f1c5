"""From a URL to a store."""

from pathlib import Path

import pytest

from postroad import errors
from postroad.storage.engine import migrations, postgres, sqlite
from postroad.storage.engine import open_store as storage_open_store


@pytest.mark.parametrize(
    "url, path",
    [
        ("sqlite:///postroad.db", "postroad.db"),
        ("sqlite:///folder/postroad.db", "folder/postroad.db"),
        ("sqlite:////var/lib/postroad/postroad.db", "/var/lib/postroad/postroad.db"),
    ],
)
def test_three_slashes_are_relative_and_four_absolute(url: str, path: str) -> None:
    assert storage_open_store.sqlite_path(url) == Path(path)


@pytest.mark.parametrize("url", ["sqlite://postroad.db", "sqlite:///", "sqlite:postroad.db"])
def test_a_url_that_names_no_file_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="names no file"):
        storage_open_store.sqlite_path(url)


@pytest.mark.parametrize("url", ["mysql://localhost/postroad", "postroad.db", "", "SELECT 1"])
async def test_an_unknown_kind_of_store_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"database\.url"):
        await storage_open_store.open_store(url)


async def test_each_scheme_has_its_engine(tmp_path: Path, postgres_url: str) -> None:
    schemes = {
        f"sqlite:///{tmp_path / 'postroad.db'}": sqlite.SqliteStore,
        postgres_url: postgres.PostgresStore,
        postgres_url.replace("postgresql:", "postgres:"): postgres.PostgresStore,
    }
    for url, kind in schemes.items():
        store = await storage_open_store.open_store(url)
        assert isinstance(store, kind)
        await store.close()


async def test_a_store_that_is_refused_is_closed(new_database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = []
    open_store = storage_open_store.open_store

    async def remember(url: str, *, connections: int) -> object:
        opened.append(await open_store(url, connections=connections))
        return opened[-1]

    monkeypatch.setattr(storage_open_store, "open_store", remember)
    with pytest.raises(migrations.SchemaError):
        await storage_open_store.open_current(new_database_url, migrate=False)
    with pytest.raises(errors.ServiceUnavailable):
        async with opened[0].reading():
            pytest.fail("it is closed")
