"""A migration after those that exist: what was migrated before it is added is a database of the version before."""

from typing import Final

import pytest

from postroad.storage.engine import migrations

# Statements that change nothing.
NOTHING: Final = "SELECT 1;"


def add(monkeypatch: pytest.MonkeyPatch, *scripts: str, compatible_from: int = 1) -> None:
    """As if this version came with more migrations."""
    known = migrations.known

    def more(dialect: str) -> list[migrations.Migration]:
        first = known(dialect)
        return first + [
            migrations.Migration(first[-1].version + number, f"test_{number}", script, compatible_from)
            for number, script in enumerate(scripts, start=1)
        ]

    monkeypatch.setattr(migrations, "known", more)
