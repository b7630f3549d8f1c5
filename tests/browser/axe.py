"""axe-core on a page: what keeps people with a screen reader, a keyboard or weak eyes from using it.

The program comes with `npm ci` (the Makefile runs it) and is never part of the service. It is handed to the page
through the browser's debugger, so the page's content security policy stays as strict as it is.
"""

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from playwright import async_api

from tests.browser import skip_report
from tests.reliability import profile

PROGRAM: Final = Path(__file__).parent / "node_modules" / "axe-core" / "axe.min.js"
WHAT: Final = "accessibility tests"
REMEDY: Final = "install with: npm ci --prefix tests/browser"
SERIOUS: Final = frozenset({"serious", "critical"})
# Moderate to axe; but people with a screen reader choose where to go from a list of landmarks.
ALSO_SERIOUS: Final = frozenset({"landmark-unique"})
# WCAG 2.2, 2.5.8: axe checks it only if it is asked to.
TARGET_SIZE: Final = "target-size"
# Frames show mail of strangers, in which scripts must not run: axe neither.
RUN: Final = """([excluded, rules]) =>
  axe.run({include: document, exclude: excluded}, {iframes: false, resultTypes: ['violations'], ...rules})"""
# The rows of a table are alike, so the first few are enough; `make test-all` checks all.
MAX_ROWS: Final = 8
EXCLUDED: Final = () if profile.IS_LONG else (f"tbody tr:nth-child(n + {MAX_ROWS + 1})",)
Rules = Mapping[str, Any]
ALL_RULES: Final[Rules] = {"rules": {TARGET_SIZE: {"enabled": True}}}
# All that another width can change.
WIDTH_RULES: Final[Rules] = {"runOnly": [TARGET_SIZE]}
# All that another scheme can change.
COLOUR_RULES: Final[Rules] = {"runOnly": ["color-contrast", "link-in-text-block"]}
# Contrast is half of the work of axe. `make test` checks it once for each page (test_every_page.py), and leaves states
# that only other tests reach to `make test-all`.
DEFAULT_RULES: Final[Rules] = (
    ALL_RULES if profile.IS_LONG else {"rules": {**ALL_RULES["rules"], "color-contrast": {"enabled": False}}}
)


async def check(page: async_api.Page, *, rules: Rules = DEFAULT_RULES) -> None:
    """Fail with every serious finding (of these rules); a machine without axe leaves the test out."""
    findings = await violations(page, rules=rules)
    assert findings == [], "\n".join(["axe finds:", *findings])


async def violations(page: async_api.Page, *, rules: Rules = DEFAULT_RULES) -> list[str]:
    """The serious and critical findings on the page as it stands, a sentence for each element."""
    if not await page.evaluate("'axe' in window"):
        await page.evaluate(program())
    result: dict[str, Any] = await page.evaluate(RUN, [EXCLUDED, rules])
    return [sentence for finding in result["violations"] for sentence in _sentences(finding)]


@functools.cache
def program() -> str:
    """The text of axe-core. Its own wrapper decides by `module` and `exports`, which pages do not have."""
    if not PROGRAM.is_file():
        skip_report.skip(WHAT, because="axe-core is not there (it needs npm)", remedy=REMEDY)
    return PROGRAM.read_text()


def _sentences(finding: dict[str, Any]) -> Sequence[str]:
    if finding["impact"] not in SERIOUS and finding["id"] not in ALSO_SERIOUS:
        return ()
    return [
        f"{finding['impact']}: {finding['id']}: {finding['help']}: {node['html'][:200]} "
        f"{' '.join(map(str, node['target']))} {node['failureSummary']}"
        for node in finding["nodes"]
    ]
