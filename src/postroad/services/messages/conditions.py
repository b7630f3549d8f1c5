"""What the terms of a search mean for stored messages: the conditions of storage/search_conditions.py."""

from typing import Final

from postroad.model import identifiers, mail, providers, search_query, search_values
from postroad.model.bounces import disposition, failure_causes, reasons
from postroad.protocol import address
from postroad.storage import search_conditions

Kind = search_conditions.Kind
# The kinds of `to:` and `from:`: an address, a domain, and the beginning of addresses.
_ADDRESSES: Final = {
    "to": (Kind.RECIPIENT, Kind.RECIPIENT_DOMAIN, Kind.RECIPIENT_PREFIX),
    "from": (Kind.SENDER, Kind.SENDER_DOMAIN, Kind.SENDER_PREFIX),
}
# Values that stand for something else than the others of their filter.
_OF_VALUES: Final[dict[tuple[str | None, str], tuple[Kind, str]]] = {
    ("status", search_values.SUPPRESSED): (Kind.UNATTEMPTED, mail.RecipientStatus.BOUNCED.value),
    ("outcome", search_values.SUPPRESSED): (Kind.UNATTEMPTED, mail.RecipientStatus.BOUNCED.value),
    ("outcome", search_values.RETRIED): (Kind.VERDICT, disposition.Verdict.RETRY.value),
    ("cause", failure_causes.ENDED): (Kind.UNATTEMPTED, mail.RecipientStatus.FAILED.value),
}
_PLAIN: Final = {"source": Kind.SOURCE, "tag": Kind.TAG, "metadata": Kind.METADATA, None: Kind.WORD}


def of_clauses(clauses: tuple[search_query.Clause, ...]) -> tuple[search_conditions.Clause, ...]:
    """The conditions of each clause; the longest words first: they are in the fewest subjects."""
    ordered = sorted(clauses, key=_cost)
    return tuple(tuple(map(_condition, clause)) for clause in ordered)


def _cost(clause: search_query.Clause) -> int:
    return -len(clause[0].value) if clause[0].name is None else -search_query.MAX_CHARACTERS


def _condition(term: search_query.Term) -> search_conditions.Condition:
    kind, value = _OF_VALUES.get((term.name, term.value)) or _kind(term)
    return search_conditions.Condition(kind, value, term.is_negated)


def _kind(term: search_query.Term) -> tuple[search_conditions.Kind, str | int]:
    name, value = term.name, term.value
    match name:
        case "to" | "from":
            return _address(name, value)
        case "status" if value in tuple(mail.MessageStatus):
            return Kind.STATUS, value
        case "status" | "outcome":
            return Kind.OUTCOME, value
        case "cause":
            return (Kind.FAULT if value in tuple(reasons.Fault) else Kind.REASON), value
        case "code":
            is_reply_code = search_values.is_reply_code(value)
            return (Kind.CODE, int(value)) if is_reply_code else (Kind.ENHANCED_CODE, value)
        case "provider":
            is_other = value == providers.OTHERS
            return (Kind.OTHER_PROVIDER, providers.UPSTREAM_PREFIX) if is_other else (Kind.PROVIDER, value)
        case "id":
            is_whole = identifiers.is_identifier(value, identifiers.MESSAGE)
            return (Kind.ID, value) if is_whole else (Kind.ID_PREFIX, value.removesuffix("*"))
        case _:
            return _PLAIN[name], value


def _address(name: str, value: str) -> tuple[search_conditions.Kind, str]:
    whole, domain, prefix = _ADDRESSES[name]
    if value.endswith("*"):
        return prefix, value.removesuffix("*")
    if value.startswith("@"):
        # A sender's domain is compared with the end of the address.
        return domain, value.removeprefix("@") if domain is Kind.RECIPIENT_DOMAIN else value
    return whole, address.parse(value).key
