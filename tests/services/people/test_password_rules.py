"""Passwords that users choose: ten characters of any script, and not among those that are guessed first."""

from importlib import resources

import pytest

from postroad import errors
from postroad.services import people
from postroad.services.people import passwords

EMAIL = "jo.smith@example.com"


@pytest.mark.parametrize("password", ["ten of 'em", "pässwörter", "🐴🦓🦄🐎🫏🐐🐑🐏🐂🐃", "kq.7 x-HqBt ka!j" * 16])
def test_from_10_to_256_characters_of_any_script_are_fine(password: str) -> None:
    passwords.check_new("password", password, email=EMAIL)


@pytest.mark.parametrize("password", ["", "9 letters", "🐴🦓🦄🐎🫏🐐🐑🐏🐂", "x" * 257, "with \0 nul nul"])
def test_too_short_too_long_and_nul_are_refused_by_name(password: str) -> None:
    with pytest.raises(errors.InvalidRequest, match="new_password:") as refusal:
        passwords.check_new("new_password", password, email=EMAIL)
    assert not password or password not in refusal.value.message


@pytest.mark.parametrize("password", ["password123", "Manchester", "1Dragon2024!", "smith12345"])
def test_what_is_guessed_first_is_refused_by_name_and_without_repeating_it(password: str) -> None:
    with pytest.raises(errors.InvalidRequest, match=r"^password: .*choose another one$") as refusal:
        passwords.check_new("password", password, email=EMAIL)
    assert password not in refusal.value.message


def test_the_list_has_ten_thousand_entries_with_the_licence_of_its_source() -> None:
    files = resources.files(people)
    entries = files.joinpath("common_passwords.txt").read_text(encoding="utf-8").splitlines()
    assert len(entries) == 10_000
    assert entries == sorted(set(entries))
    assert all(entry == entry.casefold() for entry in entries)
    assert "MIT License" in files.joinpath("common_passwords.LICENSE.txt").read_text(encoding="utf-8")
