"""New inputs from old ones: small damage, repetition, words of the language, and pieces of other inputs.

All chance comes from the generator that is given, so a run can be repeated by its seed. No input grows beyond `most`.
"""

import random
from collections.abc import Sequence
from typing import Final

# Octets on which readers stumble: ends of lines and of text, quotes, escapes, halves of UTF-8, hyphens and dots.
ODD: Final = b"\x00\r\n\t \"'\\<>@.,:;=-_%&()[]{}/?#+*~0159aZ\x7f\x80\xbf\xc3\xe2\xed\xf0\xff"
# Enough to leave a rut, few enough to keep most of what made the input good.
MAX_CHANGES: Final = 6
MAX_PIECE: Final = 64
MAX_REPEATS: Final = 200


def mutate(chance: random.Random, data: bytes, *, others: Sequence[bytes], words: Sequence[bytes], most: int) -> bytes:
    """A neighbour of the input."""
    changed = bytearray(data)
    for _ in range(chance.randint(1, MAX_CHANGES)):
        start, end = _span(chance, len(changed))
        match chance.randrange(9):
            case 0:
                changed[start:end] = b""
            case 1:
                changed[start:start] = bytes([chance.choice(ODD)])
            case 2 if changed:
                changed[min(start, len(changed) - 1)] = chance.choice(ODD)
            case 3 if changed:
                changed[min(start, len(changed) - 1)] ^= 1 << chance.randrange(8)
            case 4:
                changed[start:start] = changed[start:end] * chance.choice((1, 1, 2, 5, chance.randrange(MAX_REPEATS)))
            case 5 | 6 if words:
                changed[start : chance.choice((start, end))] = chance.choice(words)
            case 7:
                other = chance.choice(others)
                begin, stop = _span(chance, len(other))
                changed[start : chance.choice((start, end))] = other[begin:stop]
            case _:
                # The head of one and the tail of another.
                other = chance.choice(others)
                changed[start:] = other[chance.randint(0, len(other)) :]
        del changed[most:]
    return bytes(changed)


def _span(chance: random.Random, length: int) -> tuple[int, int]:
    """A piece: nearly always a short one."""
    start = chance.randint(0, length)
    longest = length if chance.random() < 0.1 else min(length, start + MAX_PIECE)
    return start, chance.randint(start, max(start, longest))
