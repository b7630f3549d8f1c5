"""The page about roles is made of the tables that the service uses."""

from postroad.model import caller
from tests.docs import roles_page


def test_the_tables_are_those_of_the_service() -> None:
    page = roles_page.PAGE.read_text()
    assert page == roles_page.written(page), "run: python -m tests.docs.roles_page"
    assert page.count("begin; written by") == 3


def test_the_table_of_permissions_says_who_sees_content() -> None:
    (row,) = [line for line in roles_page.permissions().splitlines() if line.startswith("| See content")]
    assert row.split(" | ")[1:] == ["yes", "yes", "yes", "no", "yes", "no", "no |"]
    assert list(caller.ROLE_TEXTS) == list(caller.Role)
