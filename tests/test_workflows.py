"""The workflows are valid, name what exists, and have no right that they do not need."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import test_repository

ROOT = test_repository.ROOT
FOLDER = ROOT / ".github" / "workflows"
# YAML 1.1 reads the key `on` as true.
WORKFLOWS: dict[str, Any] = {
    file.stem: {str(key): value for key, value in yaml.safe_load(file.read_text()).items()}
    for file in sorted(FOLDER.iterdir())
}
EVERY_WORKFLOW = pytest.mark.parametrize("name", WORKFLOWS)
# Beyond `contents: read`, by job.
ATTEST = {"id-token": "write", "attestations": "write"}
RIGHTS = {
    ("release", "build"): {"contents": "read", **ATTEST},
    ("release", "image"): {"contents": "read", "packages": "write"},
    ("release", "index"): {"contents": "read", "packages": "write", **ATTEST},
}


def steps(name: str) -> list[dict[str, Any]]:
    return [step for job in WORKFLOWS[name]["jobs"].values() for step in job["steps"]]


def test_there_are_workflows_for_changes_for_vulnerabilities_and_for_releases() -> None:
    assert WORKFLOWS.keys() == {"audit", "ci", "release"}


@EVERY_WORKFLOW
def test_a_workflow_only_reads_the_repository(name: str) -> None:
    assert WORKFLOWS[name]["permissions"] == {"contents": "read"}
    for job, described in WORKFLOWS[name]["jobs"].items():
        assert described.get("permissions") == RIGHTS.get((name, job))
        assert described["timeout-minutes"] <= 60
    checkouts = [step for step in steps(name) if step.get("uses", "").startswith("actions/checkout@")]
    assert [step["with"]["persist-credentials"] for step in checkouts] == [False] * len(checkouts)


@EVERY_WORKFLOW
def test_actions_are_those_of_github_in_one_version(name: str) -> None:
    used = {step["uses"] for one in WORKFLOWS for step in steps(one) if "uses" in step}
    assert all(re.fullmatch(r"actions/[\w-]+@v\d+", action) for action in used)
    assert len({action.partition("@")[0] for action in used}) == len(used)


@EVERY_WORKFLOW
def test_a_workflow_names_make_targets_and_files_that_exist(name: str) -> None:
    text = (FOLDER / f"{name}.yml").read_text()
    targets = dict(test_repository.MAKE_RULE.findall((ROOT / "Makefile").read_text()))
    assert (
        set(re.findall(r"\bmake ([a-z-]+)", "\n".join(step.get("run", "") for step in steps(name)))) <= targets.keys()
    )
    named = set(re.findall(r"(?<![\w./-])(?:requirements|clients|tests|docs)/[\w./*-]+", text))
    named |= set(re.findall(r"\.(?:ci|github)/[\w./-]+", text))
    assert named
    assert [one for one in named if not list(ROOT.glob(one))] == []


def test_the_audit_runs_every_week_and_when_a_lock_that_it_reads_changes() -> None:
    on = WORKFLOWS["audit"]["True"]
    ((cron,),) = (tuple(one.values()) for one in on["schedule"])
    assert re.fullmatch(r"\d+ \d+ \* \* [0-6]", cron)
    assert on["push"]["paths"] == on["pull_request"]["paths"]
    makefile = (ROOT / "Makefile").read_text()
    (locks,) = re.findall(r"^LOCKS := (.+)$", makefile, re.MULTILINE)
    assert set(locks.split()) == {file.stem for file in (ROOT / "requirements").glob("*.txt")}
    (folders,) = re.findall(r"^NPM_LOCKS := (.+)$", makefile, re.MULTILINE)
    read = {f"{folder}/package-lock.json" for folder in folders.split()}
    assert read | {"requirements/*.txt", ".github/workflows/audit.yml"} == set(on["push"]["paths"])
    assert all((ROOT / one).is_file() for one in read)


def test_an_image_is_released_under_the_name_that_people_are_told() -> None:
    assert "IMAGE: ghcr.io/${{ github.repository }}" in (FOLDER / "release.yml").read_text()
    for name in ("README.md", "deploy/compose.yml", "deploy/chart/values.yaml", "docs/releasing.md"):
        named = set(re.findall(r"ghcr\.io/[\w/-]+", (ROOT / name).read_text()))
        assert named - {"ghcr.io/postroad/charts/postroad"} == {"ghcr.io/postroad/postroad"}


def test_the_page_about_releases_says_what_the_workflow_signs_with() -> None:
    page = Path(ROOT / "docs" / "releasing.md").read_text()
    for right in RIGHTS["release", "index"].items():
        assert f"`{': '.join(right)}`" in page
    assert ".github/workflows/release.yml" in page
