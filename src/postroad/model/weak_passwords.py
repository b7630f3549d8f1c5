"""Passwords that are guessed first: the most common ones, patterns, and the user's own address.

A common password with a few digits or signs around it, or with signs for letters (`P4ssw0rd!`), is still common. All
comparisons ignore case.
"""

import itertools
import re
from collections.abc import Container
from typing import Final

# What people add to a word: a year and a sign, some digits.
MAX_ADDED: Final = 6
# Shorter words and units are in too many good passwords.
MIN_WORD: Final = 4
MAX_REPEATED: Final = 5
MIN_WALK: Final = 3
MAX_WALK: Final = 26
MAX_BESIDE_WALKS: Final = 3
# What has to be left of a password without the parts of the address.
MIN_OF_ONES_OWN: Final = 6

_LETTERS: Final = str.maketrans("013457@$!", "oieastasi")
_ADDED: Final = re.compile(r"^[\W\d_]+|[\W\d_]+$")
_PART: Final = re.compile(r"[\W_]+")
_ROWS: Final = """
    1234567890 abcdefghijklmnopqrstuvwxyz qwertyuiop asdfghjkl zxcvbnm qwertzuiop yxcvbnm azertyuiop qsdfghjklm wxcvbn
    1qaz 2wsx 3edc 4rfv 5tgb 6yhn 7ujm 8ik 9ol
""".split()
# Along the keyboard and the alphabet, in both directions.
_WALKS: Final = frozenset(
    row[start:end]
    for line in _ROWS
    for row in (line, line[::-1])
    for start, end in itertools.combinations(range(len(row) + 1), 2)
    if end - start >= MIN_WALK
)


def is_common(password: str, common: Container[str]) -> bool:
    """Whether the password is in a list of common ones (in lower case), is nearly one of them, or is a pattern."""
    text = password.casefold()
    word = _word(text)
    forms = {text, word, word.translate(_LETTERS), _word(text.translate(_LETTERS))}
    return any(form in common or _is_repeated(form, common) or _is_walk(form) for form in forms)


def is_own_address(password: str, email: str) -> bool:
    """Whether the password is little more than parts of this address."""
    address = email.casefold()
    rest = text = password.casefold()
    parts = [address, *address.split("@"), *_PART.split(address)]
    for part in sorted(parts, key=len, reverse=True):
        if len(part) >= MIN_WORD:
            rest = rest.replace(part, "")
    return rest != text and len(_PART.sub("", rest)) < MIN_OF_ONES_OWN


def _word(text: str) -> str:
    """The text without digits and signs around it, if these are few."""
    word = _ADDED.sub("", text)
    return word if len(word) >= MIN_WORD and len(text) - len(word) <= MAX_ADDED else text


def _is_repeated(text: str, common: Container[str]) -> bool:
    """Whether it is a short unit, or a common password, again and again."""
    if any(text[length:] == text[:-length] for length in range(1, MAX_REPEATED + 1)):
        return True
    return text[: (text + text).find(text, 1)] in common


def _is_walk(text: str) -> bool:
    """Whether it is a walk along the keyboard or the alphabet, with little else."""
    beside = place = 0
    while place < len(text):
        end = min(len(text), place + MAX_WALK)
        while end > place and text[place:end] not in _WALKS:
            end -= 1
        beside += end == place
        place = max(end, place + 1)
    return beside <= MAX_BESIDE_WALKS
