"""`postroad deploy-files` writes the folder deploy, and overwrites nothing unless told to."""

import os
from pathlib import Path

from tests.cli import cli_runner

DEPLOY = Path(__file__).parent.parent.parent / "deploy"


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_files_are_those_of_the_repository(tmp_path: Path) -> None:
    result = cli_runner.run("deploy-files", str(tmp_path / "new"))
    assert (result.exit_code, result.stderr) == (0, "")
    assert contents(tmp_path / "new") == contents(DEPLOY)
    assert {"postroad.service", "chart/Chart.yaml", "grafana/postroad.json"} <= contents(tmp_path / "new").keys()
    assert result.stdout.splitlines() == sorted(str(tmp_path / "new" / name) for name in contents(DEPLOY))
    assert os.access(tmp_path / "new" / "certbot-deploy-hook.sh", os.X_OK)


def test_an_existing_file_stays_and_nothing_is_written(tmp_path: Path) -> None:
    (tmp_path / "compose.yml").write_text("mine")
    said = cli_runner.sentence(cli_runner.run("deploy-files", str(tmp_path)))
    assert said == f"these files exist: {tmp_path}/compose.yml; add --force to overwrite them"
    assert contents(tmp_path) == {"compose.yml": b"mine"}
    assert cli_runner.run("deploy-files", str(tmp_path), "--force").exit_code == 0
    assert contents(tmp_path) == contents(DEPLOY)


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    said = cli_runner.sentence(cli_runner.run("deploy-files", str(tmp_path / "file" / "below")))
    assert "cannot be written: Not a directory" in said
