"""The image: its wheel is built from exactly the files that are copied, and it runs where it can be built."""

import itertools
import os
import re
import shlex
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from release import image_context
from tests import test_repository

ROOT = test_repository.ROOT
DOCKERFILE = (ROOT / "deploy" / "Dockerfile").read_text()
BUILD_STAGE, FINAL_STAGE = DOCKERFILE.split("\nFROM ")[1:]
IGNORED = (ROOT / "deploy" / "Dockerfile.dockerignore").read_text()
VERSION = "0.1.0.dev903+g6f63a0bd"
TIMEOUT_SECONDS = 1800
# What needs the fewest rights.
BUILDAH = {**os.environ, "BUILDAH_ISOLATION": "chroot", "BUILDAH_FORMAT": "docker"}


def build_context() -> list[str]:
    """The files that Docker sends to the builder."""
    names = [str(file.relative_to(ROOT)) for file in test_repository.repository_files()]
    return list(image_context.let_in(names, IGNORED))


def copy_into(folder: Path) -> None:
    """What the COPY lines of the first stage do: the content of a folder, or files into a folder."""
    context = build_context()
    for line in re.findall(r"^COPY (.*)$", BUILD_STAGE, re.MULTILINE):
        *sources, target = line.split()
        for source in sources:
            below = [name for name in context if name.startswith(f"{source.rstrip('/')}/")]
            into_folder = folder / target / Path(source).name if target.endswith("/") else folder / target
            copies = {name: folder / target / Path(name).relative_to(source) for name in below} or {source: into_folder}
            assert below or source in context, f"COPY {source}: not in the build context"
            for name, copy in copies.items():
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, copy)


def test_the_wheel_of_the_image_is_built_from_the_files_that_are_copied(tmp_path: Path) -> None:
    folder, dist = tmp_path / "build", tmp_path / "dist"
    copy_into(folder)
    command, of_extensions = re.findall(r"python -m hatchling build .*?/dist", BUILD_STAGE)
    assert command == of_extensions
    words = [sys.executable, *shlex.split(command)[1:]]
    built = subprocess.run(
        [str(dist) if word == "/dist" else word for word in words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    for extension in ("mcp", "postmark", "resend"):
        assert (folder / "extensions" / extension / "src" / f"postroad_{extension}" / "__init__.py").is_file()
        assert (folder / "extensions" / extension / "pyproject.toml").is_file()
    (wheel,) = dist.glob("*.whl")
    packed = set(zipfile.ZipFile(wheel).namelist())
    for name in ("defaults.toml", "docs/api.md", "docs/decisions/0001-storage.md", "deploy/postroad.service"):
        assert f"postroad/{name}" in packed
    for source, target in {"src": "", "deploy": "postroad/deploy/", "docs": "postroad/docs/"}.items():
        files = [str(file.relative_to(ROOT / source)) for file in test_repository.repository_files(source)]
        wanted = {target + name for name in files if source != "docs" or name.endswith(".md")}
        assert wanted - packed == set()


def test_the_build_context_holds_nothing_that_the_image_is_not_built_from(tmp_path: Path) -> None:
    copy_into(tmp_path)
    copied = {str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*") if file.is_file()}
    assert set(build_context()) - copied == set()


def test_podman_and_buildah_find_what_the_build_context_lets_in() -> None:
    let_in = [rule for rule in image_context.rules_of(IGNORED) if rule.startswith("!")]
    assert len(let_in) > 5
    assert [rule for rule in let_in if re.search(r"[*?\[]", rule)] == []


def test_the_final_stage_has_no_build_tools_and_is_not_root() -> None:
    assert BUILD_STAGE.count("--require-hashes --only-binary :all:") == 2
    assert "pip uninstall --yes --root-user-action ignore pip" in FINAL_STAGE
    assert [line for line in FINAL_STAGE.splitlines() if re.search(r"apt-get|pip install|hatchling|gcc", line)] == []
    steps = re.findall(r"^([A-Z]+) (.*)$", FINAL_STAGE, re.MULTILINE)
    assert ("USER", "10025:10025") in steps
    assert ("VOLUME", "/data") in steps
    assert ("ENTRYPOINT", '["postroad"]') in steps
    assert "/healthz" in FINAL_STAGE.split("HEALTHCHECK")[1]


def base_image() -> str:
    (python,) = re.findall(r"^ARG PYTHON=(\S+)$", DOCKERFILE, re.MULTILINE)
    return f"docker.io/library/python:{python}"


def can_build() -> bool:
    """Whether there is something to build with and on; a download of the base would take minutes."""
    if shutil.which("buildah") is None:
        return False
    return not subprocess.run(
        ["buildah", "inspect", "--type", "image", base_image()], capture_output=True, check=False
    ).returncode


def buildah(*words: str) -> str:
    done = subprocess.run(
        ["buildah", *words], env=BUILDAH, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


@pytest.fixture
def container() -> Iterator[str]:
    """A container of an image that was built as `make image` builds it."""
    tag = f"localhost/postroad-test-{os.getpid()}"
    options = f"--pull-never --build-arg VERSION={VERSION} --file {ROOT}/deploy/Dockerfile --tag {tag}"
    buildah("build", *options.split(), str(ROOT))
    name = buildah("from", "--pull-never", tag)
    yield name
    buildah("rm", name)
    buildah("rmi", tag)


@pytest.mark.skipif(not can_build(), reason=f"buildah is not installed, or has no image {base_image()}")
def test_the_image_runs_the_service(container: str) -> None:
    assert buildah("run", container, "--", "postroad", "--version") == f"postroad, version {VERSION}"
    assert buildah("run", container, "--", "id", "-u") == "10025"
    assert buildah("run", container, "--", "sh", "-c", "command -v pip gcc strip || true") == ""
    folder = Path(buildah("mount", container))
    assert [file.name for file in folder.glob("opt/postroad/lib/python*/site-packages/*/tests")] == []
    assert list(folder.glob("usr/**/asyncio/__pycache__/events.*.pyc")) != []
    words = ["dev", "--http", "127.0.0.1:0", "--smtp", "127.0.0.1:0"]
    running = subprocess.Popen(
        ["buildah", "run", container, "--", "postroad", *words], env=BUILDAH, stdout=subprocess.PIPE, text=True
    )
    with running:
        try:
            assert running.stdout
            (line,) = itertools.islice((line for line in running.stdout if line.startswith("Postroad is running")), 1)
            base_url = re.findall(r"http://\S+", line)[0]
            assert httpx.get(f"{base_url}/healthz").status_code == 200
            assert httpx.get(f"{base_url}/docs/api.md").text.startswith("# ")
        finally:
            running.terminate()
