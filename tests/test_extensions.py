"""Extensions: the example of the documentation, installed and asked over HTTP, and the service without any."""

import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest

from postroad import extensions
from tests import test_repository
from tests.roles import test_metrics

PAGE = (test_repository.ROOT / "docs" / "extensions.md").read_text()
WITHOUT = """
import sys
from importlib import metadata
metadata.entry_points = lambda **_: []
from postroad import cli, config
from postroad.roles import composition, listeners, service
try:
    cli.main(["{command}"], standalone_mode=False)
except Exception as problem:
    print(getattr(problem, "message", problem))
print(sorted(name for name in sys.modules if name.startswith("postroad_") or name == "mcp"))
"""


@pytest.fixture
def rediscovered() -> Iterator[None]:
    """Extensions are looked for again, before and after the test."""
    extensions.installed.cache_clear()
    yield
    extensions.installed.cache_clear()


@pytest.mark.usefixtures("rediscovered")
async def test_the_example_of_the_page_is_served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (code,) = re.findall(r"<!-- example: extension -->\n```python\n(.*?)```\n", PAGE, re.DOTALL)
    (entry,) = re.findall(r'\[project\.entry-points\."(postroad\.extensions)"\]\nhello = "(.*)"\n', PAGE)
    package = tmp_path / "site"
    (package / "postroad_hello-1.dist-info").mkdir(parents=True)
    (package / "postroad_hello.py").write_text(code)
    (package / "postroad_hello-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: postroad-hello\n")
    (package / "postroad_hello-1.dist-info" / "entry_points.txt").write_text(f"[{entry[0]}]\nhello = {entry[1]}\n")
    monkeypatch.syspath_prepend(package)
    chosen = test_metrics.settings(tmp_path, listen="")
    _, answer = await test_metrics.asked(["api"], chosen, monkeypatch, where="http", path="/hello/")
    assert (answer.status_code, answer.json()) == (401, {"oops": "X-Key: missing; send an API key"})


@pytest.mark.usefixtures("rediscovered")
@pytest.mark.parametrize("path", ["/compat/resend/emails", "/compat/postmark/bounces", "/mcp"])
async def test_without_extensions_their_paths_do_not_exist(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setattr(metadata, "entry_points", lambda **_: [])
    chosen = test_metrics.settings(tmp_path, listen="")
    _, answer = await test_metrics.asked(["api"], chosen, monkeypatch, where="http", path=path)
    assert answer.status_code == 404


@pytest.mark.parametrize("command, extra", [("mcp", "mcp"), ('import", "resend', "resend")])
def test_without_extensions_none_is_imported_and_a_command_says_what_to_install(command: str, extra: str) -> None:
    code = WITHOUT.replace("{command}", command)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        f"this command is in an extension; install it with: pip install 'postroad[{extra}]'",
        "[]",
    ]
