"""Recovery codes: ten one-time codes for whoever has lost their second factor.

A code has 80 random bits, so that a plain hash protects it: it is found neither by guessing nor from a stolen database.
"""

import hashlib
import secrets
from typing import Final

from postroad.storage import second_factors, store

CODES: Final = 10
# Letters and digits that nobody confuses: 32, so 16 of them are 80 bits.
ALPHABET: Final = "23456789abcdefghijkmnpqrstuvwxyz"
CHARACTERS: Final = 16
GROUP: Final = 4
_SEPARATORS: Final = str.maketrans("", "", " -")


def is_code(text: str) -> bool:
    """Whether a text looks like a code, however it is grouped."""
    plain = _plain(text)
    return len(plain) == CHARACTERS and set(plain) <= set(ALPHABET)


async def renew(tx: store.Transaction, login_id: str) -> list[str]:
    """New codes, which are shown once; earlier ones no longer work."""
    codes = [_new() for _ in range(CODES)]
    await second_factors.replace_codes(tx, login_id, [_hash(login_id, code) for code in codes])
    return codes


async def use(tx: store.Transaction, login_id: str, code: str) -> bool:
    """Use up a code; False if it is wrong or was used."""
    return await second_factors.use_code(tx, login_id, _hash(login_id, code))


def _new() -> str:
    text = "".join(secrets.choice(ALPHABET) for _ in range(CHARACTERS))
    return "-".join(text[start : start + GROUP] for start in range(0, CHARACTERS, GROUP))


def _plain(text: str) -> str:
    return text.translate(_SEPARATORS).lower()


def _hash(login_id: str, code: str) -> bytes:
    return hashlib.sha256(f"{login_id} {_plain(code)}".encode()).digest()
