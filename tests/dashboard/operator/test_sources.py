"""The pages of source addresses: states, attempts and warm-up, and changes at run time."""

import re

import msgspec
import pytest

from postroad import config, context
from postroad.model.units import times
from postroad.services import audit_log
from postroad.services.queue import sources
from postroad.storage.mail import mail_counts
from tests.dashboard.browser_client import Browser, notice_of

PATH = "/operator/sources"


@pytest.fixture
def ours(ctx: context.Context) -> None:
    """Two addresses."""
    entries = (
        config.Source(name="out_1", address="192.0.2.1", hello_name="out1.example.org"),
        config.Source(name="out_2", address="192.0.2.2", pool="news"),
    )
    msgspec.structs.force_setattr(ctx.settings, "sources", entries)


async def test_without_sources_the_page_says_who_chooses_the_address(operator: Browser) -> None:
    assert "No source addresses are configured; the system chooses one." in (await operator.get(PATH)).text


@pytest.mark.usefixtures("ours")
async def test_addresses_are_listed_with_state_cause_and_attempts(ctx: context.Context, operator: Browser) -> None:
    await sources.pause(ctx, "out_1", provider="google", reason="<b>blocked", until=None)
    async with ctx.store.transaction() as tx:
        counted = mail_counts.SourceCount("out_1", "google", times.day_of(ctx.clock()), delivered=1_234, blocked=7)
        await mail_counts.add_sources(tx, [counted])
    page = (await operator.get(PATH)).text
    names = re.findall(r'<td class="name"><a href="([^"]+)">([^<]+)</a></td>', page)
    assert names == [(f"{PATH}/out_1", "out_1"), (f"{PATH}/out_2", "out_2")]
    assert "&lt;b&gt;blocked." in page
    assert "1,234" in page
    one = (await operator.get(f"{PATH}/out_1")).text
    assert "out1.example.org" in one
    assert 'aria-label="Resume for Google"' in one
    assert notice_of(await operator.post(f"{PATH}/out_1/resume", {"provider": "google"})) == "Resumed on all hosts."
    assert (await operator.get(f"{PATH}/out_9")).status_code == 404


@pytest.mark.usefixtures("ours")
async def test_an_address_is_paused_drained_resumed_and_warmed_up(ctx: context.Context, operator: Browser) -> None:
    assert (await operator.post(f"{PATH}/out_2/pause", {})).status_code == 400
    paused = await operator.post(f"{PATH}/out_2/pause", {"reason": "listed", "provider": "", "until": ""})
    assert notice_of(paused) == "Paused on all hosts. Other addresses of its pool take over."
    page = (await operator.follow(paused)).text
    assert '<h1>out_2 <span class="status status-paused">paused</span></h1>' in page
    assert "/out_2/pause" not in page
    assert notice_of(await operator.post(f"{PATH}/out_2/resume")) == "Resumed on all hosts."
    drained = await operator.post(f"{PATH}/out_2/drain", {"reason": "it moves"})
    assert notice_of(drained) == "Draining. What was claimed for it is still sent."
    await operator.post(f"{PATH}/out_2/resume")
    started = await operator.post(f"{PATH}/out_2/warm-up")
    assert notice_of(started) == "The warm-up begins today."
    page = (await operator.follow(started)).text
    assert page.count('<ol class="calendar"') == 5
    assert "0 today" in page
    assert notice_of(await operator.post(f"{PATH}/out_2/end-warm-up")) == "The warm-up has ended."
    assert (await sources.find(ctx, "out_2")).state == "active"
    entries = await audit_log.page(ctx, audit_log.INSTALLATION, before=None, limit=9)
    wanted = {"source.paused", "source.resumed", "source.draining", "source.warming", "source.warm"}
    assert wanted <= {one.action for one in entries}
