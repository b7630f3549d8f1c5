"""From what came over the wire to a result or a PostroadError; nothing here reads or waits."""

from __future__ import annotations

import email.utils
import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timezone
from typing import Any, Final, TypeVar

from postroad_client import errors, failures

T = TypeVar("T")

# A receipt has a few KiB. Transports read one byte more than this, and no further.
MAX_BODY_BYTES: Final = 4 * 1024 * 1024
# Enough for all characters of a quotation, and for what its spaces were.
MAX_QUOTED_BYTES: Final = 2000


@dataclass(frozen=True)
class Response:
    """A response, whoever gave it. Names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes = field(repr=False)


def read(
    outcome: Response | failures.Failure,
    build: Callable[[dict[str, Any]], T],
    *,
    attempts: int = 1,
    idempotency_key: str | None = None,
    no_content: bool = False,
) -> T:
    """What `build` makes of a good response. Everything else is a PostroadError."""
    status: int | None = None
    headers: Mapping[str, str] = {}
    members: dict[str, Any] = {}
    if isinstance(outcome, failures.Failure):
        code, reason = outcome.code, outcome.reason
    else:
        status, headers = outcome.status, outcome.headers
        try:
            if no_content and status == 204:  # noqa: PLR2004 - RFC 9110 section 15.3.5
                return build({})
            members = _members(outcome)
            if 200 <= status < 300:  # noqa: PLR2004 - RFC 9110 section 15: 2xx is success
                return build(members)
            code, reason = _refusal(outcome, members)
        except ValueError as problem:
            code, reason = errors.UNEXPECTED_RESPONSE, str(problem)
    request_id = _text(members, "request_id") or failures.quote(headers.get("x-request-id", "")) or None
    notes = [request_id] if request_id else []
    if attempts > 1:
        notes.append(f"{attempts} attempts")
    title = f"{status} {code}" if status else code
    raise errors.kind(status, code)(
        f"{title}: {reason} ({', '.join(notes)})" if notes else f"{title}: {reason}",
        code=code,
        status=status,
        request_id=request_id,
        retry_after=seconds_to_wait(headers.get("retry-after")),
        idempotency_key=idempotency_key,
    )


def seconds_to_wait(retry_after: str | None, *, now: Callable[[], float] = time.time) -> float | None:
    """Of a header Retry-After: seconds or a date (RFC 9110 section 10.2.3). Anything else, and the past, is None."""
    if retry_after is None:
        return None
    if re.fullmatch("[0-9]+", retry_after):
        return float(retry_after)
    try:
        date = email.utils.parsedate_to_datetime(retry_after)
    except (TypeError, ValueError, OverflowError):  # TypeError: before Python 3.10
        return None
    # Of the three forms of a date one names no zone, and means UTC as well.
    seconds = date.replace(tzinfo=date.tzinfo or timezone.utc).timestamp() - now()
    return seconds if seconds > 0 else None


def _members(response: Response) -> dict[str, Any]:
    """The JSON object in the body. Raises ValueError with what was there instead."""
    if "location" in response.headers and 300 <= response.status < 400:  # noqa: PLR2004 - RFC 9110 section 15.4
        raise ValueError(
            f"redirects are not followed; this one leads to {failures.quote(response.headers['location'])}"
        )
    if len(response.body) > MAX_BODY_BYTES:
        raise ValueError(f"the response has more than {MAX_BODY_BYTES} bytes")
    try:
        members = json.loads(response.body)
    except (ValueError, RecursionError):
        members = None
    if not isinstance(members, dict):
        raise ValueError(_page(response))  # noqa: TRY004 - it is about the response, not about an argument
    return members


def _refusal(response: Response, members: dict[str, Any]) -> tuple[str, str]:
    code = _text(members, "code")
    if code is None or response.status < 400:  # noqa: PLR2004 - RFC 9110 section 15: errors are 4xx and 5xx
        raise ValueError(_page(response))
    return code, _text(members, "error") or "no reason was given"


def _page(response: Response) -> str:
    quoted = failures.quote(response.body[:MAX_QUOTED_BYTES].decode(errors="replace")) or "an empty page"
    return f"not a response of Postroad: {quoted}"


def _text(members: dict[str, Any], name: str) -> str | None:
    """A text that is there and not empty. The rest of an error is worth telling even if this is not."""
    value = members.get(name)
    return value if isinstance(value, str) and value else None
