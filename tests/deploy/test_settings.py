"""The files in deploy/ name settings, roles, ports, paths and times as the service has them."""

import re
import shlex
import socket
from pathlib import Path

import pytest
import yaml

import postroad
from postroad import config
from postroad.network import listener
from postroad.webhooks import engine
from tests.cli import cli_runner

DEPLOY = Path(__file__).parent.parent.parent / "deploy"
COMPOSE = yaml.safe_load((DEPLOY / "compose.yml").read_text())
POSTGRES = yaml.safe_load((DEPLOY / "compose.postgres.yml").read_text())
UNIT = (DEPLOY / "postroad.service").read_text()
SOCKET_UNIT = (DEPLOY / "postroad.socket").read_text()
DOCKERFILE = (DEPLOY / "Dockerfile").read_text()


def longest_stop() -> int:
    """The sum of every time that a stop may take by default."""
    tables = config.defaults()
    drain, grace = tables["http"]["drain_seconds"], tables["shutdown"]["grace_seconds"]
    # The HTTP, submission and inbound listeners, delivery, and webhooks.
    return int(drain + 4 * grace + min(engine.MAX_GRACE_SECONDS, grace))


def settings_of(environment: dict[str, str]) -> config.Settings:
    """The settings that an environment gives; an unknown name or an invalid value is an error."""
    shown = {name: value for name, value in environment.items() if name.startswith("POSTROAD_") and "__" in name}
    plain = {name: re.sub(r"\$\{\w+:\?[^}]*\}", "mail.example.com", value) for name, value in shown.items()}
    return config.load(environment=plain)


@pytest.mark.parametrize("name", [path.name for path in sorted(DEPLOY.rglob("*")) if path.is_file()])
def test_every_variable_that_a_file_names_is_a_setting(name: str) -> None:
    (file,) = DEPLOY.rglob(name)
    known = {f"POSTROAD_{section}__{key}".upper() for section, table in config.defaults().items() for key in table}
    assert set(re.findall(r"POSTROAD_[A-Z]+__[A-Z_]+", file.read_text())) <= known


def test_compose_keeps_everything_in_its_volume_on_either_database() -> None:
    environment = COMPOSE["services"]["postroad"]["environment"]
    assert environment["POSTROAD_CONFIG"] == "/data/postroad.toml"
    assert COMPOSE["services"]["postroad"]["volumes"] == ["data:/data"]
    settings = settings_of(environment)
    assert settings.database.url == "sqlite:////data/postroad.db"
    (probe,) = re.findall(r"http://([\d.:]+)/healthz", COMPOSE["services"]["postroad"]["healthcheck"]["test"][-1])
    assert probe == settings.metrics.listen
    on_postgres = POSTGRES["services"]["postroad"]["environment"]
    assert on_postgres.keys() == {"POSTROAD_DATABASE__URL"}


def test_compose_migrates_as_the_owner_and_serves_as_a_role_without_its_rights() -> None:
    services = POSTGRES["services"]
    users = {name: services[name]["environment"]["POSTROAD_DATABASE__URL"] for name in ("migrate", "postroad")}
    passwords = {name: re.findall(r"//(\w+):\$\{(\w+):", url) for name, url in users.items()}
    assert passwords == {
        "migrate": [("postroad_owner", "POSTROAD_OWNER_PASSWORD")],
        "postroad": [("postroad_service", "POSTROAD_SERVICE_PASSWORD")],
    }
    assert services["migrate"]["command"] == ["migrate"]
    assert services["migrate"]["depends_on"] == {"postgres": {"condition": "service_healthy"}}
    assert services["postroad"]["depends_on"] == {"migrate": {"condition": "service_completed_successfully"}}
    mounted = [volume.split(":")[0] for volume in services["postgres"]["volumes"] if volume.startswith("./")]
    assert mounted == ["./postgresql-roles.sql", "./postgresql-passwords.sql"]
    named = set(re.findall(r"\\getenv \w+ (\w+)", (DEPLOY / "postgresql-passwords.sql").read_text()))
    assert named <= services["postgres"]["environment"].keys()


def test_a_container_of_compose_has_no_rights_that_it_does_not_need() -> None:
    ours = COMPOSE["services"]["postroad"]
    assert (ours["cap_drop"], ours["security_opt"]) == (["ALL"], ["no-new-privileges:true"])
    assert ours["read_only"] is True


def test_compose_runs_the_image_of_this_release_unless_another_one_is_named() -> None:
    image = f"ghcr.io/postroad/postroad:{postroad.__version__}"
    ours = (COMPOSE["services"]["postroad"], POSTGRES["services"]["migrate"])
    assert {one["image"] for one in ours} == {f"${{POSTROAD_IMAGE:-{image}}}"}
    assert f" {image} deploy-files .\n" in (DEPLOY / "compose.yml").read_text()


def test_compose_goes_from_an_empty_folder_to_the_first_mail_with_five_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    comments = re.sub(r"^#", "", (DEPLOY / "compose.yml").read_text(), flags=re.MULTILINE).replace("\\\n", "")
    deploy_files, init, up, *rest = map(shlex.split, re.findall(r"^   docker (.+)$", comments, re.MULTILINE))
    assert up == ["compose", "up", "--detach"]
    assert [one[:5] for one in rest] == [
        ["compose", "exec", "postroad", "postroad", name] for name in ("domain", "send")
    ]
    monkeypatch.chdir(tmp_path)
    settings = ["--config", str(tmp_path / "postroad.toml")]
    for words in (deploy_files[-2:], [word.replace("/data", str(tmp_path)) for word in init[4:]] + settings):
        done = cli_runner.run(*words)
        assert done.exit_code == 0, done.stderr
    assert (tmp_path / "compose.yml").read_text() == (DEPLOY / "compose.yml").read_text()


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="this host has no IPv6")
def test_the_socket_unit_and_compose_have_the_addresses_that_init_sets(tmp_path: Path) -> None:
    words = (
        "--hostname",
        "mail.example.com",
        "--account",
        "Shop",
        "--domain",
        "example.com",
        "--email",
        "a@example.com",
    )
    file = tmp_path / "postroad.toml"
    made = cli_runner.run("init", "--config", str(file), "--data", str(tmp_path), *words, "--https", "acme")
    assert made.exit_code == 0, made.stderr
    text = file.read_text()
    listen = re.findall(r'^(?:redirect_|tls_)?listen = "(.+)"$', text, re.MULTILINE)
    assert sorted(listen) == sorted(re.findall(r"^ListenStream=(.+)$", SOCKET_UNIT, re.MULTILINE))
    assert f"\nBacklog={listener.BACKLOG}\n" in SOCKET_UNIT
    ports = {where.rpartition(":")[2] for where in listen}
    assert {*COMPOSE["services"]["postroad"]["ports"]} == {f"{port}:{port}" for port in ports}


def test_systemd_waits_until_the_service_says_that_it_is_ready_and_reloads_without_further_packages() -> None:
    lines = UNIT.splitlines()
    # Only the main process, which is the writer, says so: that is the default of NotifyAccess.
    assert {"Type=notify", "TimeoutStartSec=infinity"} <= {*lines}
    assert not any(line.startswith("NotifyAccess=") for line in lines)
    # The shell has a kill of its own; the program is in a package that a minimal system lacks.
    assert "ExecReload=/bin/sh -c 'kill -HUP $MAINPID'" in lines


def test_every_way_to_run_waits_longer_than_the_grace_times() -> None:
    times = {
        "compose": int(COMPOSE["services"]["postroad"]["stop_grace_period"].removesuffix("s")),
        "systemd": int(re.findall(r"^TimeoutStopSec=(\d+)$", UNIT, re.MULTILINE)[0]),
    }
    assert longest_stop() >= 90
    assert {name: seconds for name, seconds in times.items() if seconds <= longest_stop()} == {}


def test_the_readme_names_every_file() -> None:
    readme = (DEPLOY / "README.md").read_text()
    named = set(re.findall(r"`([\w.-]+/?)`", readme))
    there = {f"{path.name}/" if path.is_dir() else path.name for path in DEPLOY.iterdir()} - {"README.md"}
    assert there <= named
