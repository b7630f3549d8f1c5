"""A COMMIT with an unknown outcome: whoever repeats the request gets the result, and it happened once.

The network between the service and PostgreSQL loses the COMMIT, or only the answer to it.
"""

import asyncio
import random
from pathlib import Path

import pytest

from tests.chaos import networks
from tests.chaos.networks import Loss
from tests.reliability import service_process, whole_service


@pytest.mark.parametrize("loss", Loss)
async def test_a_sender_is_told_to_ask_again_and_then_what_has_happened(
    clean_postgres_url: str, tmp_path: Path, loss: Loss
) -> None:
    async with networks.between(clean_postgres_url, random.Random(1)) as (network, url):
        async with whole_service.running_service(tmp_path, url) as whole:
            network.aims.add(("accept", loss))
            response = await whole.post("by http")
            service_process.check_refusal(response, 503, "service_unavailable")
            assert "did not confirm in time whether this was accepted; try again with the same key" in response.text
            again = await whole.post("by http")
            assert again.status_code == 202
            assert (again.headers.get("idempotent-replayed") == "true") == (loss is Loss.ANSWER)

            network.aims.add(("accept", loss))
            assert await whole.hand_in("by smtp") == whole_service.UNAVAILABLE
            await whole.accept("in between", "by smtp")
            assert network.losses["accept", loss] == 2
        await whole.prove()


@pytest.mark.parametrize("loss", Loss)
async def test_a_result_is_recorded_once_and_nothing_is_sent_or_reported_again(
    clean_postgres_url: str, tmp_path: Path, loss: Loss
) -> None:
    kinds = {("record", loss), ("webhook record", loss)}
    async with networks.between(clean_postgres_url, random.Random(1)) as (network, url):
        async with whole_service.running_service(tmp_path, url) as whole:
            network.aims |= kinds
            await whole.accept("one", "two")
            await service_process.until(lambda: asyncio.sleep(0, result=network.losses.keys() >= kinds))
        await whole.prove()
