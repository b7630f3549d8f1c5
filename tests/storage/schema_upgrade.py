"""A store of the version before a migration, which is then migrated."""

import pytest

from postroad.storage import migrations
from postroad.storage.store import Store


class SchemaUpgrade:
    """Between `begin` and `finish`, the store has the schema before the migration."""

    def __init__(self, empty: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        self._store = empty
        self._monkeypatch = monkeypatch
        self._known = migrations.known
        self._name = ""

    async def begin(self, name: str) -> None:
        """Apply every migration before this one."""
        self._name = name
        before = [one.name for one in self._known(self._store.dialect)].index(name)
        self._monkeypatch.setattr(migrations, "known", lambda dialect: self._known(dialect)[:before])
        await migrations.apply(self._store)

    async def finish(self) -> None:
        """Apply the migration and all that follow."""
        self._monkeypatch.setattr(migrations, "known", self._known)
        assert (await migrations.apply(self._store)).migrations[0].name == self._name
