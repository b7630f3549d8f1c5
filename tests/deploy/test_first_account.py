"""From an empty PostgreSQL server to the first account, with the commands of docs/production.md for Kubernetes."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contexts import SECRET_KEY
from tests.deploy import helm_chart
from tests.deploy.helm_chart import ROOT
from tests.postgres_server import PostgresServer
from tests.reliability import service_process

pytestmark = helm_chart.needs_helm
# The words before those of the command: kubectl exec deploy/postroad-api -- postroad.
SHIM = f'kubectl() {{ shift 4; {sys.executable} -m postroad "$@"; }}\n'


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    with PostgresServer() as started:
        yield started


def run(words: str, environment: dict[str, str]) -> str:
    result = subprocess.run(
        ["bash", "-euc", SHIM + words], env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def test_the_first_account_on_kubernetes(server: PostgresServer, tmp_path: Path) -> None:
    plain = service_process.environment()
    programs = f"{server._programs}:{os.environ['PATH']}"
    psql = f"psql --no-psqlrc --host {server._folder} --username postgres --dbname postroad"
    passwords = {"POSTROAD_OWNER_PASSWORD": "of the owner", "POSTROAD_SERVICE_PASSWORD": "of the service"}
    server.execute("CREATE DATABASE postroad")
    files = " ".join(f"--file {ROOT}/deploy/postgresql-{name}.sql" for name in ("roles", "passwords"))
    run(f"{psql} {files}", {**plain, **passwords, "PATH": programs})
    assert server.execute("SELECT count(rolpassword) FROM pg_authid").strip() == "2"

    # What the two secrets are mounted as, each in pods of its own.
    for name, role in {"postroad-owner": "postroad_owner", "postroad": "postroad_service"}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "database_url").write_text(f"postgresql://{role}@/postroad?host={server._folder}\n")
    (tmp_path / "postroad" / "installation_key").write_text(SECRET_KEY)
    for secret in tmp_path.glob("*/*"):
        secret.chmod(0o600)
    objects = helm_chart.render()
    (job,) = helm_chart.of_kind(objects, "Job").values()
    migration = helm_chart.container(job)
    variables = {one["name"]: in_folder(one["value"], tmp_path / "postroad-owner") for one in migration["env"]}
    run(f"{sys.executable} -m postroad {' '.join(migration['args'])}", {**plain, **variables})

    settings = tmp_path / "postroad.toml"
    settings.write_text(in_folder(helm_chart.settings_text(objects), tmp_path / "postroad"))
    pod = {**plain, "POSTROAD_CONFIG": str(settings)}
    (command,) = re.findall(r"^kubectl exec .+$", helm_chart.KUBERNETES, re.MULTILINE)
    said = run(command, pod)
    assert "https://mail.example.com/" in said, said
    assert "._domainkey.example.com" in said
    assert "you@example.com" in run("kubectl 1 2 3 4 operator list", pod)
    # It can be repeated.
    assert "Created" not in run(command, pod)
    run("kubectl 1 2 3 4 check-config", pod)


def in_folder(text: str, folder: Path) -> str:
    """The same with the files of a secret in a folder of the test."""
    return text.replace("/run/secrets/postroad", str(folder))
