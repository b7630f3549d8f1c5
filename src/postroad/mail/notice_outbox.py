"""Writes notices, in the transaction of what they report: there is a notice exactly when it has happened.

About the same subject there is one notice in the interval of its kind, and of some kinds there are only so many about
an account in a day, so nobody can make this installation flood anybody.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec

from postroad.mail import notice_kinds
from postroad.model.events import events
from postroad.model.units import identifiers, times
from postroad.storage.engine import store
from postroad.storage.operations import notices

# Longer texts say no more.
VALUE_CHARACTERS: Final = 500


class NewNotice(msgspec.Struct, frozen=True, kw_only=True):
    """What to tell. `subject` is the thing that it is about; `account_id` is empty if that is the installation."""

    kind: str
    subject: str
    values: Mapping[str, str]
    account_id: str = ""
    user_id: str = ""


async def write(tx: store.Transaction, told: Sequence[NewNotice], *, now: int, entropy: Callable[[int], bytes]) -> None:
    """Write notices, except those of which there are enough."""
    for place, notice in enumerate(told):
        kind = notice_kinds.KINDS[notice.kind]
        if kind.max_per_day is not None:
            person = notice.user_id if kind.is_limited_by_person else None
            told_today = await notices.count(tx, notice.account_id, notice.kind, user_id=person, since=now - times.DAY)
            if told_today >= kind.max_per_day:
                continue
        row = notices.Notice(
            # One microsecond apart: they sort in this order.
            id=identifiers.make(identifiers.NOTICE, now=now + place, entropy=entropy(identifiers.ENTROPY_BYTES)),
            kind=notice.kind,
            account_id=notice.account_id,
            user_id=notice.user_id,
            subject=notice.subject,
            content=msgspec.json.encode(
                {name: value[:VALUE_CHARACTERS] for name, value in notice.values.items()}
            ).decode(),
            created_at=now,
        )
        await notices.insert(tx, row, unless_since=now - kind.interval)


def of_event(account_id: str, kind: events.EventType, data: events.AccountData) -> list[NewNotice]:
    """The notices of an event of an account."""
    if isinstance(data, events.SuspendedAccountData):
        values = {"reason": data.reason}
        return [
            NewNotice(kind=name, subject=account_id, values=values, account_id=account_id)
            for name in (notice_kinds.ACCOUNT_SUSPENDED, notice_kinds.ANY_ACCOUNT_SUSPENDED)
        ]
    if isinstance(data, events.DomainData | events.ReceivedData | events.UnsubscribedData):
        return []
    subject = data.domain_id if isinstance(data, events.FailingDomainData) else account_id
    values = {name: str(value) for name, value in msgspec.structs.asdict(data).items()}
    return [NewNotice(kind=kind.value, subject=subject, values=values, account_id=account_id)]
