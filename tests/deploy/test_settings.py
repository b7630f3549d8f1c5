"""The files in deploy/ name settings, roles, ports, paths and times as the service has them."""

import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from postroad import config
from postroad.api import monitoring
from postroad.network import listener
from postroad.roles import service
from postroad.webhooks import engine
from tests.cli import cli_runner

DEPLOY = Path(__file__).parent.parent.parent / "deploy"
COMPOSE = yaml.safe_load((DEPLOY / "compose.yml").read_text())
POSTGRES = yaml.safe_load((DEPLOY / "compose.postgres.yml").read_text())
UNIT = (DEPLOY / "postroad.service").read_text()
SOCKET_UNIT = (DEPLOY / "postroad.socket").read_text()
DOCKERFILE = (DEPLOY / "Dockerfile").read_text()
DEPLOYMENTS = list(yaml.safe_load_all((DEPLOY / "kubernetes" / "roles.yml").read_text()))
USER = 10025


def manifests() -> Iterator[dict[str, Any]]:
    for file in sorted((DEPLOY / "kubernetes").glob("*.yml")):
        yield from yaml.safe_load_all(file.read_text())


def of_kind(kind: str) -> dict[str, dict[str, Any]]:
    return {one["metadata"]["name"]: one for one in manifests() if one["kind"] == kind}


def container(deployment: dict[str, Any]) -> dict[str, Any]:
    (only,) = deployment["spec"]["template"]["spec"]["containers"]
    found: dict[str, Any] = only
    return found


def role_of(deployment: dict[str, Any]) -> str:
    name: str = deployment["metadata"]["labels"]["app.kubernetes.io/component"]
    return name


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
    # Nothing is fetched under a name that anyone could register.
    assert ours["pull_policy"] == "never"


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
        **{
            one["metadata"]["name"]: one["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]
            for one in DEPLOYMENTS
        },
    }
    assert longest_stop() >= 90
    assert {name: seconds for name, seconds in times.items() if seconds <= longest_stop()} == {}


def test_kubernetes_has_a_deployment_for_each_role() -> None:
    assert {role_of(one): container(one)["args"] for one in DEPLOYMENTS} == {
        role: ["serve", "--role", role] for role in service.ROLES
    }
    replicated = {role_of(one) for one in DEPLOYMENTS if one["spec"]["replicas"] > 1}
    assert of_kind("PodDisruptionBudget").keys() == {f"postroad-{role}" for role in replicated}


@pytest.mark.parametrize("deployment", DEPLOYMENTS, ids=role_of)
def test_a_pod_has_the_settings_and_ports_of_its_role(deployment: dict[str, Any]) -> None:
    shared = of_kind("ConfigMap")["postroad"]["data"]
    own = {one["name"]: one["value"] for one in container(deployment).get("env", [])}
    settings = settings_of({**shared, **own})
    listens = {
        "api": [settings.http.listen],
        "inbound": [settings.inbound.listen],
        "submission": [settings.submission.listen, settings.submission.tls_listen],
    }
    wanted = {int(where.rpartition(":")[2]) for where in [*listens.get(role_of(deployment), []), "0.0.0.0:9025"]}
    assert settings.metrics.listen == "0.0.0.0:9025"
    assert {one["containerPort"] for one in container(deployment)["ports"]} == wanted


@pytest.mark.parametrize("deployment", DEPLOYMENTS, ids=role_of)
def test_a_pod_is_probed_where_the_service_answers(deployment: dict[str, Any]) -> None:
    served = {route.path for route in monitoring.health_routes(lambda: False)}
    named = {one["name"] for one in container(deployment)["ports"]}
    probes = {kind: container(deployment)[f"{kind}Probe"]["httpGet"] for kind in ("startup", "liveness", "readiness")}
    assert {kind: probe["path"] for kind, probe in probes.items()} == {
        "startup": "/healthz",
        "liveness": "/healthz",
        "readiness": "/readyz",
    }
    assert {probe["path"] for probe in probes.values()} <= served
    assert {probe["port"] for probe in probes.values()} <= named


def test_pods_mount_the_secrets_that_the_settings_name_and_run_as_the_user_of_the_image() -> None:
    pods = [one["spec"]["template"]["spec"] for one in (*DEPLOYMENTS, of_kind("Job")["postroad-migrate"])]
    for pod in pods:
        assert (pod["securityContext"]["runAsUser"], pod["securityContext"]["runAsNonRoot"]) == (USER, True)
        assert pod["automountServiceAccountToken"] is False
        mounts = {one["name"]: one["mountPath"] for one in pod["containers"][0]["volumeMounts"]}
        assert mounts.keys() == {one["name"] for one in pod["volumes"]}
        assert mounts["key"] == "/run/secrets/postroad"
    key = of_kind("ConfigMap")["postroad"]["data"]["POSTROAD_SECURITY__INSTALLATION_KEY_FILE"]
    assert key == "/run/secrets/postroad/secret.key"
    assert f"USER {USER}:{USER}" in DOCKERFILE


def test_the_ingress_and_the_network_policies_lead_to_ports_of_pods() -> None:
    ((rule,),) = [one["spec"]["rules"] for one in of_kind("Ingress").values()]
    (path,) = rule["http"]["paths"]
    service_port = {port["name"] for port in of_kind("Service")["postroad-api"]["spec"]["ports"]}
    assert path["backend"]["service"] == {"name": "postroad-api", "port": {"name": "http"}}
    assert "http" in service_port
    base_url = of_kind("ConfigMap")["postroad"]["data"]["POSTROAD_HTTP__BASE_URL"]
    assert base_url == f"https://{rule['host']}"
    ports = {role_of(one): {port["name"] for port in container(one)["ports"]} for one in DEPLOYMENTS}
    open_to = dict.fromkeys(ports, frozenset[str]())
    for policy in of_kind("NetworkPolicy").values():
        role = policy["spec"]["podSelector"].get("matchLabels", {}).get("app.kubernetes.io/component")
        allowed = frozenset(port["port"] for each in policy["spec"]["ingress"] for port in each["ports"])
        open_to = {name: of | allowed if role in {name, None} else of for name, of in open_to.items()}
    assert open_to == ports


def test_every_secret_that_a_pod_uses_is_created_and_only_the_migration_has_that_of_the_owner() -> None:
    created = set(re.findall(r"create secret \w+ (\S+) ", (DEPLOY / "kubernetes" / "configuration.yml").read_text()))
    used = {}
    for one in (*DEPLOYMENTS, *of_kind("Job").values()):
        pod = one["spec"]["template"]["spec"]
        used[one["metadata"]["name"]] = {
            *(of["secretRef"]["name"] for of in pod["containers"][0]["envFrom"] if "secretRef" in of),
            *(volume["secret"]["secretName"] for volume in pod["volumes"] if "secret" in volume),
        }
    assert set().union(*used.values()) == created
    assert used.pop("postroad-migrate") == {"postroad-database-owner", "postroad-key"}
    assert all("postroad-database" in names for names in used.values())
    assert not any("postroad-database-owner" in names for names in used.values())


def test_the_settings_of_kubernetes_are_safe_and_tell_the_operator() -> None:
    settings = settings_of(of_kind("ConfigMap")["postroad"]["data"])
    assert settings.operator.is_reachable
    assert config.warnings(settings, None) == []


def test_the_readme_names_every_file() -> None:
    readme = (DEPLOY / "README.md").read_text()
    named = set(re.findall(r"`([\w.-]+/?)`", readme))
    there = {f"{path.name}/" if path.is_dir() else path.name for path in DEPLOY.iterdir()} - {"README.md"}
    assert there <= named
