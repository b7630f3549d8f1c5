"""The rules for a password that a user chooses: long enough, and not among those that are guessed first.

`common_passwords.txt` has 10,000 of the most common ones; `common_passwords.LICENSE.txt` says where they come from.
"""

import functools
from importlib import resources
from typing import Final

from postroad import errors
from postroad.model import weak_passwords
from postroad.services.auth import passwords

MIN_CHARACTERS: Final = 10


def check_new(field: str, password: str, *, email: str) -> None:
    """Refuse a password that its user should not choose."""
    passwords.refuse_impossible(field, password)
    if len(password) < MIN_CHARACTERS:
        raise errors.InvalidRequest(f"{field}: at least {MIN_CHARACTERS} characters")
    if weak_passwords.is_own_address(password, email):
        raise errors.InvalidRequest(f"{field}: must not be based on the email address; choose another one")
    if weak_passwords.is_common(password, _common()):
        raise errors.InvalidRequest(f"{field}: is a common password or pattern; choose another one")


# Read when the first password is chosen: other processes need not keep it.
@functools.cache
def _common() -> frozenset[str]:
    text = resources.files(__package__).joinpath("common_passwords.txt").read_text(encoding="utf-8")
    return frozenset(text.split())
