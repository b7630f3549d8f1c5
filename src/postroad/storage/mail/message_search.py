"""Lists of an account's messages, newest first, by any combination of conditions (storage/mail/message_search.py).

The statements are composed from the tables below, which hold all of their text; values are arguments. A list is read
by the index in which a bounded number of entries reaches furthest: `plan` finds that index and the id of its last
entry, the floor; `page` and `count` read the messages up to there that pass all conditions. $1 is the account, $2 and
$3 are the bounds of the ids. What the entries of an index prove is not tested again, and a row is looked up only where
a test needs more of it than the index has: most of the time is spent on looking up.
"""

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import msgspec

from postroad.model.delivery import providers
from postroad.model.mail import statuses
from postroad.storage.engine import queries, store
from postroad.storage.mail import messages

# The conditions of a list of messages, and what each of them is in SQL.
#
# Values are arguments. $1 is the account, `{id}` the id of the message, and `reached` one of its recipients.
# Recipients, tags and metadata are counted, because PostgreSQL would answer EXISTS by reading everything that the
# account ever sent to them. `replace` is how both engines say "contains" without patterns: a subject that contains the
# word changes; and `substr` is how they say "begins with".

# ruff: noqa: S608 - all text is of the tables below, and values are arguments


class Kind(StrEnum):
    """What a condition is about."""

    STATUS = "status"
    SOURCE = "source"
    SENDER = "sender"
    SENDER_DOMAIN = "sender_domain"
    SENDER_PREFIX = "sender_prefix"
    TAG = "tag"
    METADATA = "metadata"
    ID = "id"
    ID_PREFIX = "id_prefix"
    WORD = "word"
    # About one of the recipients.
    RECIPIENT = "recipient"
    RECIPIENT_DOMAIN = "recipient_domain"
    RECIPIENT_PREFIX = "recipient_prefix"
    OUTCOME = "outcome"
    # Has this status, but by no attempt.
    UNATTEMPTED = "unattempted"
    CAUSE = "cause"
    CODE = "code"
    # Has an attempt with this verdict.
    VERDICT = "verdict"
    # About the last attempt of one of the recipients.
    ENHANCED_CODE = "enhanced_code"
    FAULT = "fault"
    REASON = "reason"
    PROVIDER = "provider"
    OTHER_PROVIDER = "other_provider"


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition; negated, it must not be true, of a message or of any of its recipients."""

    kind: Kind
    value: str | int
    is_negated: bool = False


# One of the conditions has to be true.
Clause = tuple[Condition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """What to list: ids from `after` on and before `before`, test messages or others or both, and conditions.

    All clauses have to be true; those that are only about recipients, of one and the same recipient.
    """

    after: str
    before: str
    is_test: int | None = None
    clauses: tuple[Clause, ...] = ()


_LAST_ATTEMPT: Final = """(
            SELECT latest.{column} FROM attempts AS latest
            WHERE latest.account_id = $1 AND latest.message_id = reached.message_id
                AND latest.recipient_id = reached.id
            ORDER BY latest.started_at DESC LIMIT 1)"""
_NAMED_PROVIDERS: Final = ", ".join(f"'{name}'" for name in (*providers.NAMES, providers.SIMULATOR))

# `{}` is the value, and `{id}` the id of the message. Columns with an index are in expressions: SQLite would read by
# that index instead of the planned one. Of messages:
_OF_MESSAGE: Final = {
    Kind.STATUS: "messages.status || '' = {}",
    Kind.SOURCE: "messages.source = {}",
    Kind.SENDER: "messages.sender_key || '' = {}",
    Kind.SENDER_DOMAIN: """
        substr(messages.sender_key, length(messages.sender_key) - length(CAST({0} AS TEXT)) + 1) = {0}""",
    Kind.SENDER_PREFIX: "substr(messages.sender_key, 1, length(CAST({0} AS TEXT))) = {0}",
    Kind.TAG: """(
        SELECT count(*) FROM message_tags AS given
        WHERE given.account_id = $1 AND given.tag = {} AND given.message_id = {id}) > 0""",
    Kind.METADATA: """(
        SELECT count(*) FROM message_metadata AS stored
        WHERE stored.account_id = $1 AND stored.entry = {} AND stored.message_id = {id}) > 0""",
    Kind.ID: "{id} = {}",
    Kind.ID_PREFIX: "substr({id}, 1, length(CAST({0} AS TEXT))) = {0}",
    Kind.WORD: "replace(lower(messages.subject), {0}, '') <> lower(messages.subject)",
}
# Of a recipient, and of its last attempt:
_OF_RECIPIENT: Final = {
    Kind.RECIPIENT: "reached.email_key || '' = {}",
    Kind.RECIPIENT_DOMAIN: "reached.domain = {}",
    Kind.RECIPIENT_PREFIX: "substr(reached.email_key, 1, length(CAST({0} AS TEXT))) = {0}",
    Kind.OUTCOME: "reached.status || '' = {}",
    Kind.CAUSE: "reached.cause = {}",
    Kind.UNATTEMPTED: """reached.status || '' = {0} AND reached.cause IS NULL AND (
            SELECT count(*) FROM attempts AS refused
            WHERE refused.account_id = $1 AND refused.message_id = reached.message_id
                AND refused.recipient_id = reached.id AND refused.verdict = {0}) = 0""",
    Kind.VERDICT: """(
            SELECT count(*) FROM attempts AS tried
            WHERE tried.account_id = $1 AND tried.message_id = reached.message_id
                AND tried.recipient_id = reached.id AND tried.verdict = {}) > 0""",
    Kind.CODE: "reached.last_smtp_code = {}",
    Kind.ENHANCED_CODE: f"{_LAST_ATTEMPT.format(column='enhanced_code')} = {{}}",
    Kind.FAULT: f"{_LAST_ATTEMPT.format(column='fault')} = {{}}",
    Kind.REASON: f"{_LAST_ATTEMPT.format(column='reason')} = {{}}",
    Kind.PROVIDER: f"{_LAST_ATTEMPT.format(column='provider_queue')} = {{}}",
    # Hosts of others have queues of their own names; {} is the beginning of those of upstreams.
    Kind.OTHER_PROVIDER: f"""{_LAST_ATTEMPT.format(column="provider_queue")} NOT IN ({_NAMED_PROVIDERS})
        AND substr({_LAST_ATTEMPT.format(column="provider_queue")}, 1, length(CAST({{0}} AS TEXT))) <> {{0}}""",
}

# The columns of the recipient that these read; the others read its attempts, by its key.
RECIPIENT_COLUMNS: Final = {
    Kind.RECIPIENT: "email_key",
    Kind.RECIPIENT_PREFIX: "email_key",
    Kind.RECIPIENT_DOMAIN: "domain",
    Kind.OUTCOME: "status",
    Kind.UNATTEMPTED: "status",
    Kind.CODE: "last_smtp_code",
    Kind.CAUSE: "cause",
}
# These look up attempts of every recipient.
_OF_ATTEMPT: Final = frozenset(
    {Kind.ENHANCED_CODE, Kind.FAULT, Kind.REASON, Kind.PROVIDER, Kind.OTHER_PROVIDER, Kind.UNATTEMPTED, Kind.VERDICT}
)
# So many conditions of recipients cost as much as one of their attempts.
_RECIPIENT_SHARE: Final = 4


class Arguments:
    """The arguments of a statement, and their placeholders."""

    def __init__(self, *first: object) -> None:
        self.values = list(first)

    def add(self, value: object) -> str:
        self.values.append(value)
        return f"${len(self.values)}"


def cost(chosen: Filter) -> int:
    """How much longer than with one condition it takes to examine an entry; at least 1.

    A message may have 50 recipients, and each condition looks at all of them.
    """
    kinds = [condition.kind for clause in chosen.clauses for condition in clause if condition.kind in _OF_RECIPIENT]
    of_attempts = sum(kind in _OF_ATTEMPT for kind in kinds)
    return max(1, of_attempts + (len(kinds) - of_attempts) // _RECIPIENT_SHARE)


def is_of_recipient(clause: Clause) -> bool:
    """Whether a clause is only about recipients: then it is about the same one as all such clauses."""
    return all(condition.kind in _OF_RECIPIENT and not condition.is_negated for condition in clause)


def of_message(clause: Clause, message_id: str, arguments: Arguments) -> str:
    return " OR ".join(f"({_test(condition, message_id, arguments)})" for condition in clause)


def of_one_recipient(clauses: Sequence[Clause], message_id: str, arguments: Arguments) -> str:
    """The test of a message for clauses of which all have to be true of one of its recipients."""
    return f"""(
        SELECT count(*) FROM recipients AS reached
        WHERE reached.account_id = $1 AND reached.message_id = {message_id}{of_recipient(clauses, arguments)}) > 0"""


def of_recipient(clauses: Sequence[Clause], arguments: Arguments) -> str:
    """The same of `reached`, to be appended to its other conditions."""
    return all_of(
        " OR ".join(f"({_OF_RECIPIENT[condition.kind].format(arguments.add(condition.value))})" for condition in clause)
        for clause in clauses
    )


def all_of(tests: Iterable[str]) -> str:
    """Tests to be appended to others."""
    return "".join(f"\n    AND ({test})" for test in tests)


def _test(condition: Condition, message_id: str, arguments: Arguments) -> str:
    if condition.kind in _OF_RECIPIENT:
        test = of_one_recipient([(Condition(condition.kind, condition.value),)], message_id, arguments)
    else:
        test = _OF_MESSAGE[condition.kind].format(arguments.add(condition.value), id=message_id)
    return f"NOT ({test})" if condition.is_negated else test


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
    statuses.RecipientStatus.DEFERRED,
    statuses.RecipientStatus.BOUNCED,
    statuses.RecipientStatus.FAILED,
    statuses.RecipientStatus.EXPIRED,
    statuses.RecipientStatus.CANCELED,
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
    Kind.STATUS: (
        f"SELECT id FROM messages WHERE {_BY_ID} AND status = {{}} AND status <> 'queued' AND status <> 'delivered'"
    ),
    Kind.SENDER: f"SELECT id FROM messages WHERE {_BY_ID} AND sender_key = {{}}",
    Kind.TAG: f"SELECT message_id AS id FROM message_tags WHERE {_BY_MESSAGE_ID} AND tag = {{}}",
    Kind.METADATA: f"SELECT message_id AS id FROM message_metadata WHERE {_BY_MESSAGE_ID} AND entry = {{}}",
    Kind.RECIPIENT: f"{_ENTRY} AND {{entry}}.email_key = {{}}",
}
# Only a recipient with one of the outcomes above can have these.
_UNDELIVERED_KINDS: Final = frozenset({Kind.FAULT, Kind.REASON, Kind.CAUSE})
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
        ordered = msgspec.structs.replace(usable, is_oldest_first=is_oldest_first)
        floor = await _floor(tx, account_id, chosen, ordered, limit=limit)
        if floor is None:
            return ordered
        plans.append(msgspec.structs.replace(ordered, floor=floor))
    furthest = max if is_oldest_first else min
    return furthest(plans, key=lambda candidate: candidate.floor or "")


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
            name = " or ".join(dict.fromkeys(condition.kind for condition in clause))
            proven = clause if all(map(_is_proven, clause)) else None
            found.append(Plan(name, tuple(entries), None, proven))
    return found or [BY_TIME]


async def _entries(tx: store.Transaction, account_id: str, condition: Condition, *, limit: int) -> _Entries:
    """The entries in which every message with this condition is; none: there is no such index."""
    kind, value = condition.kind, condition.value
    if condition.is_negated:
        return ()
    if kind in (Kind.STATUS, Kind.OUTCOME) and value == statuses.MessageStatus.QUEUED:
        return ((_BY_QUEUE, ()),)
    if kind is Kind.STATUS and value == statuses.MessageStatus.DELIVERED:
        return ()
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
    if condition.value == statuses.MessageStatus.QUEUED:
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
    shared = [clause for clause in clauses if is_of_recipient(clause)]
    is_by_time = plan.entries == BY_TIME.entries
    message_id = "messages.id" if is_by_time else "scanned.id"
    scanned = "" if is_by_time else _scanned(plan, shared if plan.is_of_recipients else [], arguments)
    tests = [of_message(clause, message_id, arguments) for clause in clauses if clause not in shared]
    if shared and not plan.is_of_recipients:
        tests.append(of_one_recipient(shared, message_id, arguments))
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
    return f"{tables}{all_of(tests)}", message_id


def _scanned(plan: Plan, shared: list[Clause], arguments: Arguments) -> str:
    """The ids of the entries that pass the conditions about recipients: before their messages are looked up."""
    selects = [_select(text, values, shared, arguments) for text, values in plan.entries]
    if plan.is_in_order:
        return selects[0]
    return f"SELECT DISTINCT id FROM ({' UNION ALL '.join(selects)}) AS entries"


def _select(text: str, values: tuple[object, ...], shared: list[Clause], arguments: Arguments) -> str:
    if not shared:
        return _bound(text, values, arguments)
    read = {RECIPIENT_COLUMNS.get(condition.kind) for clause in shared for condition in clause}
    if read <= {None, _RECIPIENT_COLUMNS[text]}:
        selected = _bound(text, values, arguments, entry="reached")
    else:
        selected = _bound(text, values, arguments, join=_JOIN) + _ON
    return f"{selected}{of_recipient(shared, arguments)}"


class SavedView(msgspec.Struct, frozen=True):
    """A row of `saved_views`; no two of an account have the same name."""

    id: str
    account_id: str
    name: str
    search: str
    created_at: int


@queries.rows("saved_views.of_account", SavedView)
async def saved_views(tx: store.Transaction, account_id: str) -> list[SavedView]: ...


async def put_view(tx: store.Transaction, view: SavedView) -> None:
    """Store a view, or another search for the one with this name."""
    await tx.execute("saved_views.put", view.account_id, view.id, view.name, view.search, view.created_at)


@queries.change("saved_views.rename")
async def rename_view(tx: store.Transaction, account_id: str, view_id: str, name: str) -> None: ...
@queries.change("saved_views.remove")
async def remove_view(tx: store.Transaction, account_id: str, view_id: str) -> None: ...
