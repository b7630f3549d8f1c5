"""Lists of an account's messages, newest first, by any combination of conditions (storage/search_conditions.py).

The statements are composed from the tables below, which hold all of their text; values are arguments. A list is read
by the index in which a bounded number of entries reaches furthest: `plan` finds that index and the id of its last
entry, the floor; `page` and `count` read the messages up to there that pass all conditions. $1 is the account, $2 and
$3 are the bounds of the ids. What the entries of an index prove is not tested again, and a row is looked up only where
a test needs more of it than the index has: most of the time is spent on looking up.
"""

# ruff: noqa: S608 - all text is of the tables below, and values are arguments

import dataclasses
from typing import Final

import msgspec

from postroad.model import mail
from postroad.storage import messages, search_conditions, store
from postroad.storage.search_conditions import Arguments, Clause, Condition, Filter, Kind

_Entries = tuple[tuple[str, tuple[object, ...]], ...]


class Plan(msgspec.Struct, frozen=True):
    """The index entries to read, as SELECTs of ids with their arguments, and the id of the last; None: to the end.

    `proven` is the clause that is true of all messages with an entry.
    """

    name: str
    entries: _Entries
    floor: str | None
    proven: Clause | None = None
    is_oldest_first: bool = False

    @property
    def is_of_recipients(self) -> bool:
        """Whether the entries are recipients: then one of them is the recipient that the conditions ask for."""
        return all(text in _RECIPIENT_COLUMNS for text, _ in self.entries)

    @property
    def is_in_order(self) -> bool:
        """Whether the entries are read in the order of time, and each message has one of them."""
        return len(self.entries) == 1 and self.entries[0][0] in (*_BY_VALUE.values(), _BY_TEST, _BY_TIME)

    @property
    def order(self) -> str:
        """How its ids are sorted."""
        return "ASC" if self.is_oldest_first else "DESC"

    def bounds(self, chosen: Filter) -> tuple[str, str]:
        """The first id, and the one before which the last is."""
        if self.floor is None:
            return chosen.after, chosen.before
        # Ids have the same length, so that none is between one and itself with one more digit.
        return (chosen.after, f"{self.floor}0") if self.is_oldest_first else (self.floor, chosen.before)


_BOUNDED: Final = "account_id = $1 AND {id} >= $2 AND {id} < $3"
_BY_MESSAGE_ID: Final = _BOUNDED.format(id="message_id")
_BY_ID: Final = _BOUNDED.format(id="id")
_BY_TIME: Final = f"SELECT id FROM messages WHERE {_BY_ID}"
_BY_TEST: Final = f"{_BY_TIME} AND is_test = 1"
_BY_QUEUE: Final = f"SELECT message_id AS id FROM queue WHERE {_BY_MESSAGE_ID}"
# The index has only recipients with these outcomes, as this condition says.
UNDELIVERED: Final = (
    mail.RecipientStatus.DEFERRED,
    mail.RecipientStatus.BOUNCED,
    mail.RecipientStatus.FAILED,
    mail.RecipientStatus.EXPIRED,
    mail.RecipientStatus.CANCELED,
)
_OF_RECIPIENTS: Final = (
    "SELECT {entry}.message_id AS id FROM recipients AS {entry}{join}\n    WHERE {entry}.account_id = $1"
)
_ENTRY: Final = f"{_OF_RECIPIENTS} AND {{entry}}.message_id >= $2 AND {{entry}}.message_id < $3"
_BY_OUTCOME: Final = (
    f"{_ENTRY} AND {{entry}}.status = {{}} AND {{entry}}.status <> 'queued' AND {{entry}}.status <> 'delivered'"
)
# Apart from the entry, or SQLite reads the table by time, because it has more columns than the index.
_JOIN: Final = " CROSS JOIN recipients AS reached"
_ON: Final = """
    AND reached.account_id = $1 AND reached.message_id = entry.message_id AND reached.id = entry.id"""
# Entries that are all about a condition's value, at most one for each message.
_BY_VALUE: Final = {
    Kind.STATUS: f"SELECT id FROM messages WHERE {_BY_ID} AND status = {{}} AND status <> 'queued'",
    Kind.SENDER: f"SELECT id FROM messages WHERE {_BY_ID} AND sender_key = {{}}",
    Kind.TAG: f"SELECT message_id AS id FROM message_tags WHERE {_BY_MESSAGE_ID} AND tag = {{}}",
    Kind.METADATA: f"SELECT message_id AS id FROM message_metadata WHERE {_BY_MESSAGE_ID} AND entry = {{}}",
    Kind.RECIPIENT: f"{_ENTRY} AND {{entry}}.email_key = {{}}",
}
# Only a recipient with one of the outcomes above can have these.
_UNDELIVERED_KINDS: Final = frozenset({Kind.FAULT, Kind.REASON})
# The first reply code, and the first digit of an enhanced code, that is no success.
_FIRST_FAILURE: Final = 400
_ENHANCED_SUCCESS: Final = "2."
# Read as a whole when it is short, because it is not in the order of time.
_BY_PREFIX: Final = (
    f"{_OF_RECIPIENTS} AND {{entry}}.email_key >= {{}} AND {{entry}}.email_key < {{}} "
    "AND {entry}.message_id || '' >= $2 AND {entry}.message_id || '' < $3"
)
_PREFIX_LENGTH: Final = """SELECT count(*) FROM (
    SELECT 1 FROM recipients WHERE account_id = $1 AND email_key >= $2 AND email_key < $3 LIMIT $4) AS beginning"""
# The column that an index of recipients has beside their key.
_RECIPIENT_COLUMNS: Final = {_BY_OUTCOME: "status", _BY_VALUE[Kind.RECIPIENT]: "email_key", _BY_PREFIX: "email_key"}
# How many entries for each message of a page are tried before as many times more, and at last all of them.
_NEAR: Final = 8
# Sorts after every character of an address.
_LAST_CHARACTER: Final = "\U0010ffff"

# Every message, to the end.
BY_TIME: Final = Plan("time", ((_BY_TIME, ()),), None)

_COLUMNS: Final = """SELECT messages.id, messages.account_id, messages.source, messages.sender, messages.subject,
    messages.status, messages.billing_status, messages.recipient_count, messages.credits_reserved, messages.size,
    messages.request_id, messages.created_at, messages.send_at, messages.expires_at, messages.is_test"""


async def plan(
    tx: store.Transaction, account_id: str, chosen: Filter, *, limit: int, is_oldest_first: bool = False
) -> Plan:
    """The index in which `limit` entries reach furthest: that of the most selective clause."""
    plans: list[Plan] = []
    for usable in await _usable(tx, account_id, chosen, limit=limit):
        one = msgspec.structs.replace(usable, is_oldest_first=is_oldest_first)
        floor = await _floor(tx, account_id, chosen, one, limit=limit)
        if floor is None:
            return one
        plans.append(msgspec.structs.replace(one, floor=floor))
    furthest = max if is_oldest_first else min
    return furthest(plans, key=lambda one: one.floor or "")


async def page(
    tx: store.Transaction, account_id: str, chosen: Filter, plan: Plan = BY_TIME, *, limit: int
) -> list[messages.Message]:
    """The messages that pass all conditions, in the order of the plan, up to its floor."""
    # Where they have to be sorted, all entries are examined first: few are often enough.
    entries = _NEAR * limit
    while not plan.is_in_order:
        near = await _floor(tx, account_id, chosen, plan, limit=entries)
        if near is None or near == plan.floor:
            break
        found = await _page(tx, account_id, chosen, msgspec.structs.replace(plan, floor=near), limit=limit)
        if len(found) == limit:
            return found
        entries *= _NEAR
    return await _page(tx, account_id, chosen, plan, limit=limit)


async def _page(
    tx: store.Transaction, account_id: str, chosen: Filter, plan: Plan, *, limit: int
) -> list[messages.Message]:
    arguments = Arguments(account_id, *plan.bounds(chosen))
    tables, message_id = _tables(chosen, plan, arguments, needs_row=True)
    rows = await tx.fetch_composed(
        f"{_COLUMNS}\nFROM {tables}\nORDER BY {message_id} {plan.order} LIMIT {arguments.add(limit)}", *arguments.values
    )
    return [messages.Message(*row) for row in rows]


async def count(tx: store.Transaction, account_id: str, chosen: Filter, plan: Plan, *, limit: int) -> int:
    """How many messages pass all conditions up to the plan's floor, at most `limit`."""
    arguments = Arguments(account_id, *plan.bounds(chosen))
    if chosen.is_test == 0 and not await tx.fetch_composed(f"{_BY_TEST} LIMIT 1", *arguments.values):
        # All of them are live: a message need not be read only to see that.
        chosen = dataclasses.replace(chosen, is_test=None)
    tables, _ = _tables(chosen, plan, arguments, needs_row=False)
    rows = await tx.fetch_composed(
        f"SELECT count(*) FROM (\nSELECT 1 FROM {tables}\nLIMIT {arguments.add(limit)}) AS counted", *arguments.values
    )
    return int(rows[0][0])


async def _floor(tx: store.Transaction, account_id: str, chosen: Filter, plan: Plan, *, limit: int) -> str | None:
    arguments = Arguments(account_id, *plan.bounds(chosen))
    selects = " UNION ALL ".join(_bound(text, values, arguments) for text, values in plan.entries)
    # Sorted by each part's index and merged, so no more entries are read than are skipped.
    rows = await tx.fetch_composed(
        f"{selects} ORDER BY id {plan.order} LIMIT 1 OFFSET {arguments.add(limit - 1)}", *arguments.values
    )
    return str(rows[0][0]) if rows else None


async def _usable(tx: store.Transaction, account_id: str, chosen: Filter, *, limit: int) -> list[Plan]:
    """A plan for each clause whose messages are all in an index; that of all messages where there is none."""
    found = [Plan("test", ((_BY_TEST, ()),), None)] if chosen.is_test else []
    for clause in chosen.clauses:
        parts = [await _entries(tx, account_id, condition, limit=limit) for condition in clause]
        if all(parts):
            entries = dict.fromkeys(entry for part in parts for entry in part)
            name = " or ".join(dict.fromkeys(one.kind for one in clause))
            proven = clause if all(map(_is_proven, clause)) else None
            found.append(Plan(name, tuple(entries), None, proven))
    return found or [BY_TIME]


async def _entries(tx: store.Transaction, account_id: str, condition: Condition, *, limit: int) -> _Entries:
    """The entries in which every message with this condition is; none: there is no such index."""
    kind, value = condition.kind, condition.value
    if condition.is_negated:
        return ()
    if kind in (Kind.STATUS, Kind.OUTCOME) and value == mail.MessageStatus.QUEUED:
        return ((_BY_QUEUE, ()),)
    if kind in _BY_VALUE:
        return ((_BY_VALUE[kind], (value,)),)
    if kind is Kind.UNATTEMPTED or (kind is Kind.OUTCOME and value in UNDELIVERED):
        return ((_BY_OUTCOME, (value,)),)
    if kind in _UNDELIVERED_KINDS or _is_failure(condition):
        return tuple((_BY_OUTCOME, (outcome.value,)) for outcome in UNDELIVERED)
    if kind is Kind.RECIPIENT_PREFIX:
        bounds = (value, f"{value}{_LAST_CHARACTER}")
        rows = await tx.fetch_composed(_PREFIX_LENGTH, account_id, *bounds, limit)
        return ((_BY_PREFIX, bounds),) if rows[0][0] < limit else ()
    return ()


def _is_proven(condition: Condition) -> bool:
    """Whether all entries of a condition have it. The queue also has recipients that are deferred."""
    if condition.value == mail.MessageStatus.QUEUED:
        return False
    return condition.kind in _BY_VALUE or condition.kind in (Kind.OUTCOME, Kind.RECIPIENT_PREFIX)


def _is_failure(condition: Condition) -> bool:
    if condition.kind is Kind.CODE:
        return int(condition.value) >= _FIRST_FAILURE
    return condition.kind is Kind.ENHANCED_CODE and not str(condition.value).startswith(_ENHANCED_SUCCESS)


def _bound(text: str, values: tuple[object, ...], arguments: Arguments, *, entry: str = "entry", join: str = "") -> str:
    return text.format(*map(arguments.add, values), entry=entry, join=join)


def _tables(chosen: Filter, plan: Plan, arguments: Arguments, *, needs_row: bool) -> tuple[str, str]:
    """The tables of a list with all conditions, and the name of the message's id. A count needs no row of a message."""
    clauses = [clause for clause in chosen.clauses if clause != plan.proven]
    shared = [clause for clause in clauses if search_conditions.is_of_recipient(clause)]
    is_by_time = plan.entries == BY_TIME.entries
    message_id = "messages.id" if is_by_time else "scanned.id"
    scanned = "" if is_by_time else _scanned(plan, shared if plan.is_of_recipients else [], arguments)
    tests = [search_conditions.of_message(clause, message_id, arguments) for clause in clauses if clause not in shared]
    if shared and not plan.is_of_recipients:
        tests.append(search_conditions.of_one_recipient(shared, message_id, arguments))
    if chosen.is_test is not None:
        tests.insert(0, f"messages.is_test = {arguments.add(chosen.is_test)}")
    if is_by_time:
        tables = "messages\nWHERE messages.account_id = $1 AND messages.id >= $2 AND messages.id < $3"
    elif needs_row or any("messages." in test for test in tests):
        # A cross join, or SQLite reads by time.
        tables = (
            f"({scanned}) AS scanned CROSS JOIN messages\nWHERE messages.account_id = $1 AND messages.id = scanned.id"
        )
    else:
        tables = f"({scanned}) AS scanned\nWHERE true"
    return f"{tables}{search_conditions.all_of(tests)}", message_id


def _scanned(plan: Plan, shared: list[Clause], arguments: Arguments) -> str:
    """The ids of the entries that pass the conditions about recipients: before their messages are looked up."""
    selects = [_select(text, values, shared, arguments) for text, values in plan.entries]
    if plan.is_in_order:
        return selects[0]
    return f"SELECT DISTINCT id FROM ({' UNION ALL '.join(selects)}) AS entries"


def _select(text: str, values: tuple[object, ...], shared: list[Clause], arguments: Arguments) -> str:
    if not shared:
        return _bound(text, values, arguments)
    read = {search_conditions.RECIPIENT_COLUMNS.get(one.kind) for clause in shared for one in clause}
    if read <= {None, _RECIPIENT_COLUMNS[text]}:
        selected = _bound(text, values, arguments, entry="reached")
    else:
        selected = _bound(text, values, arguments, join=_JOIN) + _ON
    return f"{selected}{search_conditions.of_recipient(shared, arguments)}"
