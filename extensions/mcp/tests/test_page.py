"""docs/mcp.md lists the tools as they are, with their scopes."""

import json
import re
from pathlib import Path

from postroad_mcp import tools

PAGE = (Path(__file__).parents[3] / "docs" / "mcp.md").read_text()
# `test_tools.py` compares it with what the tool returns.
EXAMPLE = json.loads(PAGE.partition("<!-- example: diagnosis -->\n```json\n")[2].partition("```")[0])
ROW = re.compile(r"^\| `([a-z_]+)` \| .* \| `([a-z]+)` \| (.*) \|$", re.MULTILINE)


def test_every_tool_is_listed_with_its_scope() -> None:
    listed = {name: (scope, changes) for name, scope, changes in ROW.findall(PAGE)}
    assert list(listed) == [tool.name for tool in tools.TOOLS]
    for tool in tools.TOOLS:
        scope, changes = listed[tool.name]
        assert f"the scope {scope}" in tool.description
        assert (changes == "no") is tool.is_read_only
