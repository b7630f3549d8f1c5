"""docs/templates.md: its example is rendered, and its limits are those of the code."""

import json
import re
from pathlib import Path

from postroad.mail.accept import rendering
from postroad.model.mail import limits
from postroad.protocol.text import mustache, placeholders
from postroad.services.templates import templates

PAGE = (Path(__file__).parents[2] / "docs" / "templates.md").read_text(encoding="utf-8")


def test_the_example_becomes_what_the_page_shows() -> None:
    ((source, values, text),) = re.findall(
        r"```mustache\n(.*?)```\s+```json\n(.*?)```\s+```text\n(.*?)```", PAGE, re.DOTALL
    )
    assert mustache.parse(source).render(json.loads(values), escape_html=False) == text


def test_the_limits_are_those_of_the_code() -> None:
    for row in (
        f"| a body | {templates.BODY_CHARACTERS:,} characters |",
        f"| nested sections | {mustache.MAX_DEPTH} |",
        f"| other templates that a template uses | {rendering.MAX_USED} |",
        f"| versions that are kept | {templates.MAX_VERSIONS}, and the published one |",
        f"| variables of a message | {limits.VARIABLES} |",
        f"| lists and objects in variables | {limits.VARIABLE_DEPTH} levels, {limits.VARIABLE_VALUES:,} values |",
        f"| a rendered body | {placeholders.MAX_RENDERED_CHARACTERS:,} characters |",
        f"| steps of rendering: texts, tags and items | {mustache.MAX_STEPS:,} |",
    ):
        assert row in PAGE
