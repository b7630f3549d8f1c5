"""The package itself: what it needs, and what it carries."""

import inspect
import subprocess
import sys
import typing
from pathlib import Path

import pytest

import postroad_client

FOLDER = Path(__file__).parent.parent
WITHOUT_AIOHTTP = """
import sys
sys.modules["aiohttp"] = None  # as if it were not installed
from postroad_client import *
Client("http://127.0.0.1:9", token="t")
try:
    AsyncClient("http://127.0.0.1:9", token="t")
except ImportError as error:
    print(error)
"""


def test_only_the_async_client_needs_aiohttp() -> None:
    command = [sys.executable, "-W", "error", "-c", WITHOUT_AIOHTTP]
    environment = {"PYTHONPATH": str(FOLDER / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ended.stderr == ""
    assert "postroad-client[async]" in ended.stdout


@pytest.mark.skipif(sys.version_info < (3, 10), reason="`str | None` is no type of this Python")
def test_the_types_of_everything_public_can_be_read_at_run_time() -> None:
    public = [value for value in vars(postroad_client).values() if inspect.isclass(value)]
    methods = [method for kind in public for method in vars(kind).values() if inspect.isfunction(method)]
    assert postroad_client.Client.__enter__ in methods
    for one in (*public, *methods):
        typing.get_type_hints(one)


def test_it_carries_the_licence_of_the_repository() -> None:
    assert (FOLDER / "LICENSE").read_bytes() == (FOLDER.parents[1] / "LICENSE").read_bytes()


def test_it_tells_that_it_has_types() -> None:
    assert (FOLDER / "src" / "postroad_client" / "py.typed").exists()
