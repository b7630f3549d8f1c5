"""The whole service through PgBouncer in transaction mode, where a session of the server serves many processes."""

import asyncio
from pathlib import Path

from tests.reliability import whole_service

MESSAGES = 20


async def test_mail_is_accepted_delivered_and_reported_through_pgbouncer(bouncer_url: str, tmp_path: Path) -> None:
    async with whole_service.running_service(tmp_path, bouncer_url) as whole:
        await whole.says("notify_unavailable")
        await asyncio.gather(*(whole.accept(f"http-{number}", f"smtp-{number}") for number in range(MESSAGES)))
        await whole.finished()
        await whole.prove()
        assert (await whole.client.get(f"{whole.service.base_url}/readyz")).status_code == 200
