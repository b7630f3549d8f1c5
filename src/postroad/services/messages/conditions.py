"""What the terms of a search mean for stored messages: the conditions of storage/message_search.py."""

from typing import Final

from postroad.model import identifiers, mail, providers, search_query, search_values
from postroad.model.bounces import reasons
from postroad.protocol import address
from postroad.storage import message_search

Kind = message_search.Kind
# The kinds of `to:` and `from:`: an address, a domain, and the beginning of addresses.
_ADDRESSES: Final = {
    "to": (Kind.RECIPIENT, Kind.RECIPIENT_DOMAIN, Kind.RECIPIENT_PREFIX),
    "from": (Kind.SENDER, Kind.SENDER_DOMAIN, Kind.SENDER_PREFIX),
}
_PLAIN: Final = {"source": Kind.SOURCE, "tag": Kind.TAG, "metadata": Kind.METADATA, None: Kind.WORD}


def of_clauses(clauses: tuple[search_query.Clause, ...]) -> tuple[message_search.Clause, ...]:
    """The conditions of each clause; the longest words first: they are in the fewest subjects."""
    ordered = sorted(clauses, key=_cost)
    return tuple(tuple(map(_condition, clause)) for clause in ordered)


def _cost(clause: search_query.Clause) -> int:
    return -len(clause[0].value) if clause[0].name is None else -search_query.MAX_CHARACTERS


def _condition(term: search_query.Term) -> message_search.Condition:
    kind, value = _kind(term)
    return message_search.Condition(kind, value, term.is_negated)


def _kind(term: search_query.Term) -> tuple[message_search.Kind, str | int]:
    name, value = term.name, term.value
    match name:
        case "to" | "from":
            return _address(name, value)
        case "status" if value in tuple(mail.MessageStatus):
            return Kind.STATUS, value
        case "status" | "outcome":
            is_suppressed = value == search_values.SUPPRESSED
            return (Kind.SUPPRESSED, mail.RecipientStatus.BOUNCED.value) if is_suppressed else (Kind.OUTCOME, value)
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


def _address(name: str, value: str) -> tuple[message_search.Kind, str]:
    whole, domain, prefix = _ADDRESSES[name]
    if value.endswith("*"):
        return prefix, value.removesuffix("*")
    if value.startswith("@"):
        # A sender's domain is compared with the end of the address.
        return domain, value.removeprefix("@") if domain is Kind.RECIPIENT_DOMAIN else value
    return whole, address.parse(value).key
