"""A wheel runs without being installed, as docs/production.md says: `uvx --from dist/*.whl postroad dev`."""

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from postroad import build_version

ROOT = Path(__file__).parents[2]
TIMEOUT_SECONDS = 900
# What uv says when the packages are neither in its cache nor reachable.
UNREACHABLE = ("Failed to fetch", "Network", "network", "Connection", "error sending request")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)], cwd=ROOT, check=True)
    (built,) = folder.glob("*.whl")
    return built


@pytest.mark.skipif(shutil.which("uvx") is None, reason="uvx is not installed: pip install uv")
def test_uvx_runs_the_service_for_development_from_a_wheel(wheel: Path, tmp_path: Path) -> None:
    command = ["uvx", "--from", str(wheel), "postroad"]
    version = subprocess.run(
        [*command, "--version"], capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False, cwd=tmp_path
    )
    if version.returncode and any(word in version.stderr for word in UNREACHABLE):
        pytest.skip("the packages of the service cannot be downloaded")
    assert version.stdout == f"postroad, version {build_version.current()}\n", version.stderr
    listed = subprocess.run(
        [*command, "deploy-files", "files"], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert "files/postroad.service\n" in listed.stdout
    _serve(command, tmp_path)


def _serve(command: list[str], folder: Path) -> None:
    """Start the service, ask whether it is alive, and stop it."""
    info, log = folder / "data" / "dev.json", folder / "log"
    words = ["dev", "--data", "data", "--http", "127.0.0.1:0", "--smtp", "127.0.0.1:0"]
    with (
        log.open("wb") as written,
        subprocess.Popen([*command, *words], stdout=written, stderr=written, cwd=folder) as running,
    ):
        try:
            give_up_at = time.monotonic() + TIMEOUT_SECONDS
            while not info.exists():
                assert running.poll() is None, log.read_text()
                assert time.monotonic() < give_up_at, log.read_text()
                time.sleep(0.1)
            base_url = json.loads(info.read_text())["base_url"]
            assert httpx.get(f"{base_url}/healthz").status_code == 200
        finally:
            running.terminate()
        assert running.wait(TIMEOUT_SECONDS) == 0, log.read_text()
