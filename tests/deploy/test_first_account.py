"""From an empty PostgreSQL server to the first account, with the commands of docs/production.md for Kubernetes."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.contexts import SECRET_KEY
from tests.postgres_server import PostgresServer
from tests.reliability import service_process

ROOT = Path(__file__).parents[2]
CONFIGURATION = ROOT / "deploy" / "kubernetes" / "configuration.yml"
# The words before those of the command: kubectl --namespace postroad exec deploy/postroad-api -- postroad.
SHIM = f'kubectl() {{ shift 6; {sys.executable} -m postroad "$@"; }}\n'


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

    def url(role: str) -> str:
        return f"postgresql://{role}@/postroad?host={server._folder}"

    run(f"{sys.executable} -m postroad migrate", {**plain, "POSTROAD_DATABASE__URL": url("postroad_owner")})
    shared = next(one for one in yaml.safe_load_all(CONFIGURATION.read_text()) if one["kind"] == "ConfigMap")["data"]
    key = tmp_path / "secret.key"
    key.write_text(SECRET_KEY)
    key.chmod(0o600)
    pod = {
        **plain,
        **shared,
        "POSTROAD_SECURITY__INSTALLATION_KEY_FILE": str(key),
        "POSTROAD_DATABASE__URL": url("postroad_service"),
    }
    page = (ROOT / "docs" / "production.md").read_text().partition("\n### Kubernetes\n")[2]
    (block,) = re.findall(r"```sh\n((?:kubectl .+ exec .+\n)+)```", page)
    said = run(block, pod)
    assert "password:  " in said, said
    assert "._domainkey.example.com" in said
    assert "you@example.com" in run("kubectl 1 2 3 4 5 6 operator list", pod)
    run("kubectl 1 2 3 4 5 6 check-config", pod)
