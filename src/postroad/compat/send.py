"""How compatible APIs send: through `submit`, with the rate-limit header fields of `POST /emails`.

Packages of other services put fields into the headers of a message that Postroad writes itself, so these are left out;
our own API refuses them.
"""

import collections
import functools
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

from postroad import context, errors
from postroad.compat import compatible_api
from postroad.mail.accept import submit, submit_batch, transaction, validation
from postroad.model.mail import send_request, statuses
from postroad.protocol.mime import header_fields
from postroad.web import routing

Fields = tuple[tuple[str, str], ...]
Given = TypeVar("Given")
Read = TypeVar("Read")
# What packages add that make a whole message first.
GENERATED_HEADERS: Final = frozenset(
    "date message-id mime-version content-type content-transfer-encoding content-disposition content-id".split()
)


def custom_headers(headers: Mapping[str, Any]) -> dict[str, Any]:
    """The headers that are the caller's own; its package adds the others, and Postroad writes them.

    All of them count, and what is left out has to be a header too.
    """
    validation.check_header_count(len(headers))
    custom: dict[str, Any] = {}
    for name, value in headers.items():
        if name.lower() in GENERATED_HEADERS:
            _check_generated(name, value)
        else:
            custom[name] = value
    return custom


def _check_generated(name: str, value: object) -> None:
    if not isinstance(value, str):
        raise errors.InvalidRequest(f"headers[{name!r}]: must be a string")
    try:
        header_fields.check_value(value)
    except header_fields.HeaderError as problem:
        raise errors.InvalidRequest(f"headers[{name!r}]: {problem}") from None


async def read_each(
    ctx: context.Context, account_id: str, items: Sequence[Given], read: Callable[[int, Given], Read]
) -> list[Read]:
    """The items of a batch, each read with its place: of all but the smallest batches in turns of a thread."""
    done: list[Read] = []
    left = collections.deque(enumerate(items))
    while left:
        work = functools.partial(_read_some, left, done, read)
        await ctx.threads.run(account_id, work) if len(items) > submit_batch.INLINE_ITEMS else work()
    return done


def _read_some(
    left: collections.deque[tuple[int, Given]], done: list[Read], read: Callable[[int, Given], Read]
) -> None:
    ends_at = time.monotonic() + submit_batch.TURN_SECONDS
    while left and time.monotonic() < ends_at:
        done.append(read(*left.popleft()))


async def send(
    ctx: context.Context, request: routing.Request, message: send_request.SendRequest
) -> tuple[transaction.Accepted, Fields]:
    """Accept a message; returns the header fields of the response too."""
    key = compatible_api.idempotency_key(request)
    with submit.RateFields(ctx, request.caller) as rate_fields:
        accepted = await submit.submit(
            ctx, request.caller, message, request_id=request.id, source=statuses.Source.API, key=key
        )
    return accepted, rate_fields.of(accepted)


async def send_batch(
    ctx: context.Context,
    request: routing.Request,
    messages: tuple[send_request.SendRequest, ...],
    *,
    all_or_nothing: bool,
) -> tuple[transaction.Accepted, Fields]:
    """Accept several messages; returns the header fields of the response too."""
    batch = send_request.BatchRequest(emails=messages, all_or_nothing=all_or_nothing)
    key = compatible_api.idempotency_key(request)
    with submit.RateFields(ctx, request.caller) as rate_fields:
        accepted = await submit_batch.submit_batch(ctx, request.caller, batch, request_id=request.id, key=key)
    return accepted, rate_fields.of(accepted)
