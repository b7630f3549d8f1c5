"""A move to PostgreSQL under load: what was accepted is there once, delivered once, and its keys are remembered."""

from pathlib import Path

from tests.reliability import moving


async def test_callers_who_do_not_give_up_lose_nothing_in_a_move(
    clean_sqlite_url: str, postgres_url: str, tmp_path: Path
) -> None:
    outcome = await moving.run(tmp_path, clean_sqlite_url, postgres_url, messages=4 * moving.BATCH)
    assert outcome.moved > 4 * moving.BATCH
    assert outcome.queued > 100
    assert outcome.while_held >= moving.MORE
    assert outcome.accepted >= outcome.moved + outcome.while_held + moving.MORE
