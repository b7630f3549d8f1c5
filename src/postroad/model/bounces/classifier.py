"""Classifies a server's reply: its reason by the tables of `rules`, and the time it names for another attempt.

A reply is foreign text, so the work is bounded: only its beginning is read, each word is looked up once, and patterns
have bounded repetitions only.
"""

import re
from typing import Final

from postroad.model.bounces import rules
from postroad.protocol.smtp import values

# The longest replies of large providers have about 500 characters, with the reason before the advice.
_READ_CHARACTERS: Final = 600

_WORD: Final = re.compile(r"[^\W_]+")
_BETWEEN: Final = re.compile(r"[\s<>()\[\]:;,]")
# qmail and its kin write the enhanced code at the end, `no mailbox here by that name. (#5.1.1)`; others write `#5.1.0`.
_TRAILING_CODE: Final = re.compile(r"[(\[#]([45]\.\d{1,3}\.\d{1,3})(?!\.?\d)")

# `try again in 5 minutes`, `Greylisted for 300 seconds`, `please come back in 00:04:59`, `Retry-After: 120`. A figure
# counts only after words about another attempt: `100 messages in 60 minutes` is a limit, not a time to wait.
_TIME: Final = re.compile(
    r"(?:again|retry|wait|come back|resend|greylist\w{0,3}|graylist\w{0,3}|delay\w{0,3}|later|deferred)"
    r"[^0-9/]{0,40}(?:(?P<clock>\d{1,2}:\d\d:\d\d)|(?P<number>\d{1,6})\s{0,2}(?P<unit>s|m|h|d)"
    r"(?:ecs?|econds?|ins?|inutes?|rs?|ours?|ays?|\(s\))?\b)"
    r"|retry.after[\s:=]{1,3}(?P<seconds>\d{1,6})(?![\d:])"
)
_UNIT_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
# The default schedule is over by then.
_MAX_RETRY_AFTER_SECONDS: Final = 86_400


class _Phrases:
    """A table of phrases, indexed by their first word; a phrase of one word also matches as a prefix."""

    def __init__(self, table: dict[str, str]) -> None:
        self._reasons: list[str] = []
        self._by_word: dict[str, list[tuple[int, str]]] = {}
        self._by_beginning: dict[str, list[tuple[int, str]]] = {}
        for reason, phrases in table.items():
            for phrase in phrases.split(","):
                self._add(phrase.strip(), reason)

    def _add(self, phrase: str, reason: str) -> None:
        first, _, rest = phrase.partition(" ")
        entry = (len(self._reasons), phrase)
        if rest:
            self._by_word.setdefault(first, []).append(entry)
        else:
            self._by_beginning.setdefault(first[:3], []).append(entry)
        self._reasons.append(reason)

    def find(self, words: list[str]) -> str | None:
        """The reason of the matching phrase that comes first in the table."""
        text, at, best = " ".join(words), 0, len(self._reasons)
        for word in words:
            for entries in (self._by_word.get(word, ()), self._by_beginning.get(word[:3], ())):
                for number, phrase in entries:
                    if number >= best:
                        break
                    if text.startswith(phrase, at):
                        best = number
            at += len(word) + 1
        return self._reasons[best] if best < len(self._reasons) else None


_PHRASES: Final = _Phrases(rules.PHRASES)
_VAGUE_PHRASES: Final = _Phrases(rules.VAGUE_PHRASES)


def find_reason(reply: values.Reply) -> str:
    """The reason of a 4xx or 5xx reply, by the order of tables that `rules` explains."""
    enhanced = reply.enhanced or _trailing_code(reply)
    detail = enhanced[2:]
    words = _words_of(reply.text[:_READ_CHARACTERS], enhanced)
    return (
        rules.SURE_CODES.get(detail)
        or _PHRASES.find(words)
        or rules.LIKELY_CODES.get(detail)
        or _VAGUE_PHRASES.find(words)
        or rules.SUBJECTS.get(detail.partition(".")[0])
        or rules.BASIC_CODES.get(reply.code)
        or ("refused" if reply.code >= 500 else "deferred")  # noqa: PLR2004 - RFC 5321 section 4.2.1
    )


def find_retry_after(text: str) -> int | None:
    """After how many seconds the server wants another attempt; None when it does not say."""
    found = _TIME.search(text[:_READ_CHARACTERS].lower())
    if found is None:
        return None
    if found["clock"]:
        hours, minutes, seconds = map(int, found["clock"].split(":"))
        named = hours * 3600 + minutes * 60 + seconds
    elif found["number"]:
        named = int(found["number"]) * _UNIT_SECONDS[found["unit"]]
    else:
        named = int(found["seconds"])
    return min(named, _MAX_RETRY_AFTER_SECONDS)


def _trailing_code(reply: values.Reply) -> str:
    found = _TRAILING_CODE.search(reply.text[:_READ_CHARACTERS])
    return found[1] if found and int(found[1][0]) == reply.code // 100 else ""


def _words_of(text: str, enhanced: str) -> list[str]:
    """The words of the code and of the text, without addresses: those are not the server's wording."""
    kept = [piece for piece in _BETWEEN.split(text.lower()) if "@" not in piece and piece != enhanced]
    return _WORD.findall(f"{enhanced} {' '.join(kept)}")
