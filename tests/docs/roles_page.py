"""The tables of docs/roles.md, made of those of model/caller.py. `python -m tests.docs.roles_page` writes them."""

from pathlib import Path
from typing import Final

from postroad.dashboard import api_keys
from postroad.model import caller

PAGE: Final = Path(__file__).parents[2] / "docs" / "roles.md"
COMMAND: Final = "written by python -m tests.docs.roles_page"


def permissions() -> str:
    """What each role permits, and an SMTP credential."""
    columns = {
        **{name: caller.ROLE_PERMISSIONS[role] for role, (name, _) in caller.ROLE_TEXTS.items()},
        "Operator": caller.OPERATOR_PERMISSIONS,
        "SMTP credential": caller.PASSWORD_PERMISSIONS,
    }
    rows = [
        [text, *("yes" if permission in granted else "no" for granted in columns.values())]
        for permission, text in caller.PERMISSION_TEXTS.items()
    ]
    return _table(["Permission", *columns], rows)


def roles() -> str:
    """The roles and what they are for."""
    return _table(
        ["Role", "`role`", "Summary"], [[name, f"`{role}`", text] for role, (name, text) in caller.ROLE_TEXTS.items()]
    )


def scopes() -> str:
    """The scopes of API keys."""
    return _table(
        ["Scope", "An API key with it may"], [[f"`{scope}`", text] for scope, text in api_keys.SCOPES.items()]
    )


def written(page: str) -> str:
    """The page with its tables as they have to be."""
    for part, table in (("permissions", permissions()), ("roles", roles()), ("scopes", scopes())):
        begin, end = f"<!-- {part}: begin; {COMMAND} -->\n", f"<!-- {part}: end -->\n"
        before, _, rest = page.partition(begin)
        _, _, after = rest.partition(end)
        page = f"{before}{begin}\n{table}\n{end}{after}"
    return page


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text()))
