"""What docs/operator.md says of the operator console is what the console is."""

import re
from pathlib import Path

from postroad import config
from postroad.dashboard import application
from postroad.dashboard.operator import console
from tests.dashboard import browser_client

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "operator.md").read_text()
# Asked for by pages themselves.
PARTS = {"/operator/live"}


def test_every_page_of_the_console_is_in_the_table_and_no_other() -> None:
    site = browser_client.build_site(config.load(environment={}, overrides={}))
    served = [route(site) for route in application.OPERATOR_ROUTES]
    table = PAGE.split("| Page | What it shows |", 1)[1].split("\n\n", 1)[0]
    named = re.findall(r"^\| [^|]*`(/operator[^`]*)`", table, re.MULTILINE)
    assert len(named) == len(set(named))
    assert set(named) == {route.path for route in served if route.method == "GET"} - PARTS


def test_pages_are_refreshed_as_often_as_it_says() -> None:
    assert (console.REFRESH_SECONDS, "Open pages are refreshed every five seconds." in PAGE) == (5, True)
