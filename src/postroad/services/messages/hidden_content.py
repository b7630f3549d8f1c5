"""Messages without their content, for those who may see what became of them and not what they say.

That is the role `analyst` (model/caller.py), and an operator who looks at an account. Addresses and tags stay: states
and statistics are about them. Searches for hidden words are refused, because their results would tell them one by one.
"""

import dataclasses
from typing import Final

import msgspec

from postroad.model import receipt as receipts
from postroad.model import search_query
from postroad.services.messages import lookup
from postroad.storage import messages

SUBJECT: Final = "Subject hidden"
# The filters whose results depend on content; words of the subject have no name.
_FILTERS: Final = frozenset({None, "metadata"})


def message(row: messages.Message) -> messages.Message:
    """A message without its subject and metadata."""
    return dataclasses.replace(row, subject=SUBJECT, metadata=None)


def receipt(given: receipts.Receipt) -> receipts.Receipt:
    """What was accepted, without subject, metadata, header fields and attachments."""
    return msgspec.structs.replace(given, subject=SUBJECT, metadata=msgspec.UNSET, headers={}, attachments=())


def details(found: lookup.Details) -> lookup.Details:
    """A message with its details, without the same."""
    return dataclasses.replace(found, message=message(found.message), receipt=receipt(found.receipt))


def check_search(text: str) -> search_query.Query:
    """The query of a text; refused if its results depend on content."""
    query = search_query.parse(text)
    if any(term.name in _FILTERS for clause in query.clauses() for term in clause):
        raise search_query.QueryError("subjects and metadata are hidden, and cannot be searched", 0, len(text))
    return query


def can_search(text: str) -> bool:
    """Whether a search is one that may be used."""
    try:
        check_search(text)
    except search_query.QueryError:
        return False
    return True
