"""The conditions of a list of messages, and what each of them is in SQL.

Values are arguments. $1 is the account, `{id}` the id of the message, and `reached` one of its recipients. Recipients,
tags and metadata are counted, because PostgreSQL would answer EXISTS by reading everything that the account ever sent
to them. `replace` is how both engines say "contains" without patterns: a subject that contains the word changes; and
`substr` is how they say "begins with".
"""

# ruff: noqa: S608 - all text is of the tables below, and values are arguments

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from postroad.model import providers


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
    Kind.UNATTEMPTED: """reached.status || '' = {0} AND (
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
        """The placeholder of one more argument."""
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
    return all(one.kind in _OF_RECIPIENT and not one.is_negated for one in clause)


def of_message(clause: Clause, message_id: str, arguments: Arguments) -> str:
    """The test of a message for a clause."""
    return " OR ".join(f"({_test(one, message_id, arguments)})" for one in clause)


def of_one_recipient(clauses: Sequence[Clause], message_id: str, arguments: Arguments) -> str:
    """The test of a message for clauses of which all have to be true of one of its recipients."""
    return f"""(
        SELECT count(*) FROM recipients AS reached
        WHERE reached.account_id = $1 AND reached.message_id = {message_id}{of_recipient(clauses, arguments)}) > 0"""


def of_recipient(clauses: Sequence[Clause], arguments: Arguments) -> str:
    """The same of `reached`, to be appended to its other conditions."""
    return all_of(
        " OR ".join(f"({_OF_RECIPIENT[one.kind].format(arguments.add(one.value))})" for one in clause)
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
