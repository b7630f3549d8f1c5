"""The translation of Resend's send request: what it is given is refused by name, or becomes a request of ours."""

import asyncio
import json
from typing import Any

import hypothesis
import msgspec
import pytest
from hypothesis import strategies as st

from postroad import context, errors
from postroad.model.mail import send_request
from postroad.model.units import times
from postroad.storage.people import accounts
from postroad.web import request_reader
from postroad_resend import api as resend
from postroad_resend import payload
from tests.compat import compat_client

NOW = 1_800_000_000 * times.SECOND
TEXT = st.text(max_size=20)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda below: st.lists(below, max_size=4) | st.dictionaries(TEXT, below, max_size=4),
    max_leaves=10,
)
ADDRESS = st.sampled_from(["a@example.com", "Ada <ada@example.net>", "nobody", ""])
MEMBERS: dict[str, st.SearchStrategy[Any]] = {
    "from": ADDRESS,
    "to": ADDRESS | st.lists(ADDRESS, max_size=3),
    "cc": ADDRESS | st.lists(ADDRESS, max_size=3),
    "reply_to": ADDRESS | st.lists(ADDRESS, max_size=11),
    "subject": TEXT,
    "html": TEXT,
    "text": TEXT,
    "headers": st.dictionaries(st.sampled_from(["X-A", "x-a", "From", "Ä", ""]), TEXT, max_size=3),
    "scheduled_at": st.sampled_from(["in 1 min", "in 99999 days", "2027-01-16T08:00:00Z", "soon", "in a day"]),
    "tags": st.lists(st.fixed_dictionaries({"name": TEXT, "value": TEXT}), max_size=3),
    "attachments": st.lists(
        st.fixed_dictionaries(
            {"filename": TEXT},
            optional={
                "content": st.sampled_from(["aGk=", "?", ""]) | st.lists(st.integers(-1, 256), max_size=3),
                "path": TEXT,
                "content_id": TEXT,
            },
        ),
        max_size=2,
    ),
    "template": st.fixed_dictionaries({"id": TEXT}, optional={"variables": st.dictionaries(TEXT, JSON, max_size=2)}),
    "topic_id": st.none() | TEXT,
}
EMAIL = st.fixed_dictionaries(
    {}, optional={name: value | st.none() | st.integers(0, 9) | TEXT for name, value in MEMBERS.items()}
)


@hypothesis.given(EMAIL | JSON)
def test_a_request_is_refused_or_becomes_one_of_ours(document: object) -> None:
    try:
        made = payload.translate(payload.read(document), now=NOW)
    except errors.InvalidRequest:
        return
    given = {name: value for name, value in msgspec.to_builtins(made).items() if value is not None}
    assert request_reader.convert(given, send_request.SendRequest, root="body") == made


@pytest.mark.parametrize(
    "text, seconds",
    [
        ("in 1 min", 60),
        ("in 90 seconds", 90),
        ("In 2 Hours", 7200),
        ("in an hour", 3600),
        (" in 1 day ", 86_400),
        ("2027-01-15T09:00:00+01:00", 0),
    ],
)
def test_a_time_may_be_counted_from_now(text: str, seconds: int) -> None:
    assert payload.parse_scheduled_at(text, now=NOW) == NOW + seconds * times.SECOND


@pytest.mark.parametrize("text", ["", "tomorrow", "in min", "in 1 month", "in 123456 days", "2027-01-15", "in ١ min"])
def test_another_way_to_write_a_time_is_refused(text: str) -> None:
    with pytest.raises(errors.InvalidRequest, match="scheduled_at: write an ISO 8601 time with a time zone, such as"):
        payload.parse_scheduled_at(text, now=NOW)


async def test_no_body_is_an_internal_error(ctx: context.Context, account: accounts.Account) -> None:
    key = await compat_client.new_key(ctx, account.id)
    taking = [route for route in resend.API.routes if route.body is not None]
    assert len(taking) >= 5
    loop = asyncio.get_running_loop()
    async with compat_client.opened(ctx, resend.API, {"Authorization": f"Bearer {key}"}) as client:

        async def statuses(body: object) -> list[int]:
            content = json.dumps(body)
            headers = {"Content-Type": "application/json"}
            return [
                (
                    await client.request(
                        route.method, route.path.replace("{id}", "x"), content=content, headers=headers
                    )
                ).status_code
                for route in taking
            ]

        @hypothesis.given(EMAIL | JSON | st.lists(EMAIL | JSON, max_size=3))
        def check(body: object) -> None:
            answered = asyncio.run_coroutine_threadsafe(statuses(body), loop).result(60)
            assert all(status < 500 for status in answered), answered

        await asyncio.to_thread(check)
