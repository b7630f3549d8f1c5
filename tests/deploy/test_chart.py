"""The Helm chart: valid objects with the rights, ports, probes and settings of the service, and checked values."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import trustme
import yaml

import postroad
from postroad import config
from postroad.api import monitoring
from postroad.roles import service
from release import chart as packages
from tests.cli import cli_runner
from tests.contexts import SECRET_KEY
from tests.deploy import helm_chart, test_settings
from tests.deploy.helm_chart import CHART, Object, Values

pytestmark = helm_chart.needs_helm
USER = 10025
# Kubernetes 1.27 is the oldest that Chart.yaml admits.
VERSIONS = ("1.27.0", kubernetes_validate.latest_version())
DIGEST = f"sha256:{'0a' * 32}"
# Everything that can be switched or added.
FULL: Values = {
    "image": {"digest": DIGEST, "pullPolicy": "Always", "pullSecrets": ["registry"]},
    "settings": {
        # What is false or 0 is no default.
        "http": {"drain_seconds": 0, "base_url": "https://mail.example.com:8443"},
        "security": {"operator_second_factor": False},
        "delivery": {"hostname": "out.example.com", "retry_seconds": [60, 300], "connections": 1_000_000},
        "bounce_guard": {"suspend_percent": 7.5, "warn_percent": 5},
        "providers": {"google": {"connections": 5}},
        "doctor": {"blocklists": {"bl.example.org": 'https://example.org/?a=1&b="<2>"'}},
        "upstreams": [
            {
                "name": "relay",
                "host": "smtp.relay.example",
                "username": "me",
                "password_file": "/run/secrets/postroad/relay_password",
            }
        ],
        "routes": [{"upstreams": ["relay"]}],
    },
    "env": [
        {
            "name": "POSTROAD_OPERATOR__WEBHOOK_URL",
            "valueFrom": {"secretKeyRef": {"name": "postroad", "key": "webhook_url"}},
        }
    ],
    "roles": {
        "delivery": {
            "replicas": 5,
            "resources": {"requests": {"cpu": "1"}},
            "nodeSelector": {"example.com/mail": "yes"},
            "tolerations": [{"key": "example.com/mail", "operator": "Exists"}],
        },
        "submission": {"service": {"type": "NodePort", "annotations": {"example.com/address": "192.0.2.1"}}},
        "maintenance": {"replicas": 2},
    },
    "podMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
}
SMALL: Values = {
    "tlsSecret": "",
    "settings": {"acme": {"names": ["mail.example.com"]}},
    "roles": {
        "inbound": {"replicas": 1, "service": {"type": "ClusterIP"}},
        "submission": {"replicas": 1},
        "webhooks": {"replicas": 0},
    },
    "ingress": {"enabled": False},
    "networkPolicy": {"enabled": False},
}
ALL_VALUES = {"documented": {}, "full": FULL, "small": SMALL}
each_values = pytest.mark.parametrize("values", ALL_VALUES.values(), ids=ALL_VALUES)


def deployments(objects: list[Object]) -> dict[str, Object]:
    """The Deployment of each role."""
    return {helm_chart.component(found): found for found in helm_chart.of_kind(objects, "Deployment").values()}


def with_pods(objects: list[Object]) -> list[Object]:
    return [found for found in objects if found["kind"] in {"Deployment", "Job", "Pod"}]


def secrets_of(found: Object) -> set[str]:
    volumes = {
        volume["secret"]["secretName"] for volume in helm_chart.pod(found).get("volumes", []) if "secret" in volume
    }
    variables = {
        variable["valueFrom"]["secretKeyRef"]["name"]
        for variable in helm_chart.container(found).get("env", [])
        if "valueFrom" in variable
    }
    return volumes | variables


def port_names(found: Object) -> set[str]:
    return {port["name"] for port in helm_chart.container(found)["ports"]}


def selects(selector: dict[str, str], found: Object) -> bool:
    labels: dict[str, str] = found["spec"]["template"]["metadata"]["labels"]
    return selector.items() <= labels.items()


@each_values
def test_helm_finds_nothing_to_complain_about(values: Values) -> None:
    done = helm_chart.run("lint", "--strict", values=(helm_chart.documented_values(), values))
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert "1 chart(s) linted, 0 chart(s) failed" in done.stdout
    assert re.findall(r"\[(?:WARNING|ERROR)\].*", done.stdout) == []


@each_values
@pytest.mark.parametrize("version", VERSIONS)
def test_every_object_has_the_schema_of_kubernetes(values: Values, version: str) -> None:
    for found in helm_chart.render(values):
        if found["kind"] != "PodMonitor":  # of the Prometheus operator
            kubernetes_validate.validate(found, version, strict=True)


def test_every_object_follows_the_name_of_the_release_and_none_has_the_name_of_another() -> None:
    objects = helm_chart.render(FULL)
    names = [(found["kind"], found["metadata"]["name"]) for found in objects]
    assert len(set(names)) == len(names)
    assert all(name.startswith(helm_chart.RELEASE) for _, name in names)


def test_there_is_a_deployment_for_each_role() -> None:
    found = deployments(helm_chart.render())
    assert {role: helm_chart.container(one)["args"] for role, one in found.items()} == {
        role: ["serve", "--role", role] for role in service.ROLES
    }
    assert {role: one["spec"]["replicas"] for role, one in deployments(helm_chart.render(FULL)).items()} == {
        "api": 2,
        "delivery": 5,
        "inbound": 2,
        "maintenance": 2,
        "submission": 2,
        "webhooks": 2,
    }


@each_values
def test_a_selector_finds_the_pods_of_one_role(values: Values) -> None:
    objects = helm_chart.render(values)
    found = deployments(objects)
    for kind in ("Deployment", "Service", "PodDisruptionBudget"):
        for one in helm_chart.of_kind(objects, kind).values():
            selector = one["spec"]["selector"]
            labels = selector if kind == "Service" else selector["matchLabels"]
            assert [role for role, other in found.items() if selects(labels, other)] == [helm_chart.component(one)]


def test_replicas_are_on_different_nodes_and_drained_one_at_a_time() -> None:
    objects = helm_chart.render(FULL, {"roles": {"api": {"replicas": 1}}})
    found = deployments(objects)
    for one in found.values():
        spread = helm_chart.pod(one)["topologySpreadConstraints"]
        assert [each["topologyKey"] for each in spread] == ["kubernetes.io/hostname", "topology.kubernetes.io/zone"]
        assert all(each["labelSelector"] == one["spec"]["selector"] for each in spread)
    budgets = helm_chart.of_kind(objects, "PodDisruptionBudget").values()
    assert {helm_chart.component(one) for one in budgets} == found.keys() - {"api"}
    assert {one["spec"]["maxUnavailable"] for one in budgets} == {1}


@each_values
def test_a_pod_has_no_rights_that_it_does_not_need(values: Values) -> None:
    for found in with_pods(helm_chart.render(values)):
        spec, only = helm_chart.pod(found), helm_chart.container(found)
        context = spec["securityContext"]
        assert (context["runAsNonRoot"], context["runAsUser"], context["runAsGroup"]) == (True, USER, USER)
        assert context["seccompProfile"] == {"type": "RuntimeDefault"}
        assert (spec["automountServiceAccountToken"], spec["enableServiceLinks"]) == (False, False)
        assert only["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert only["resources"]["requests"]
        assert not any(spec.get(name) for name in ("hostNetwork", "hostPID", "hostIPC"))
        assert not any("hostPath" in volume for volume in spec.get("volumes", []))
        mounts = {mount["name"] for mount in only.get("volumeMounts", [])}
        assert mounts == {volume["name"] for volume in spec.get("volumes", [])}
    assert f"USER {USER}:{USER}" in test_settings.DOCKERFILE


def test_only_pods_with_ports_below_1024_have_the_sysctl_for_them() -> None:
    for role, found in deployments(helm_chart.render()).items():
        low = [port for port in helm_chart.container(found)["ports"] if port["containerPort"] < 1024]
        assert bool(helm_chart.pod(found)["securityContext"].get("sysctls")) == bool(low), role


def test_only_the_migration_has_the_secret_of_the_owner() -> None:
    objects = helm_chart.render(FULL)
    used = {found["metadata"]["name"]: secrets_of(found) for found in with_pods(objects)}
    assert used.pop("mail-migrate") == {"postroad-owner"}
    assert used.pop("mail-test") == set()
    assert used == {
        **{f"mail-{role}": {"postroad"} for role in service.ROLES},
        **{f"mail-{role}": {"postroad", "postroad-tls"} for role in ("inbound", "submission")},
    }


def test_the_documentation_creates_the_secrets_that_pods_use_with_the_keys_that_they_read() -> None:
    page = helm_chart.KUBERNETES
    created = dict(re.findall(r"kubectl create secret generic (\S+) (.+)", page))
    keys = {name: re.findall(r"--from-(?:file|literal)=(\w+)=", words) for name, words in created.items()}
    assert keys == {"postroad-owner": ["database_url"], "postroad": ["database_url", "installation_key"]}
    objects = helm_chart.render()
    assert set().union(*map(secrets_of, with_pods(objects))) == keys.keys() | {"postroad-tls"}
    read = set(re.findall(r"/run/secrets/postroad/(\w+)", helm_chart.settings_text(objects)))
    assert read == set(keys["postroad"])


def test_helm_names_the_next_command_as_the_documentation_does() -> None:
    notes = (CHART / "templates" / "NOTES.txt").read_text().replace("\\\n    ", "")
    said = notes.replace("--namespace {{ .Release.Namespace }} ", "").replace("{{ .Release.Name }}", "postroad")
    (command,) = re.findall(r"^kubectl exec .+$", helm_chart.KUBERNETES, re.MULTILINE)
    assert f"\n  {command}\n" in said


def test_the_migration_runs_before_the_pods_of_each_version() -> None:
    (job,) = helm_chart.of_kind(helm_chart.render(), "Job").values()
    hooks = {name.removeprefix("helm.sh/"): value for name, value in job["metadata"]["annotations"].items()}
    assert hooks == {
        "hook": "pre-install,pre-upgrade",
        "hook-weight": "0",
        "hook-delete-policy": "before-hook-creation",
    }
    assert helm_chart.container(job)["args"] == ["migrate"]
    # Nothing that is installed after it.
    assert not any("configMap" in volume for volume in helm_chart.pod(job)["volumes"])


@pytest.mark.parametrize(
    "image, shown",
    [
        ({}, f"ghcr.io/postroad/postroad:{postroad.__version__}"),
        ({"tag": "1.2.3"}, "ghcr.io/postroad/postroad:1.2.3"),
        ({"tag": "1.2.3", "digest": DIGEST}, f"ghcr.io/postroad/postroad@{DIGEST}"),
    ],
)
def test_the_image_is_named_by_digest_tag_or_the_version_of_the_chart(image: dict[str, str], shown: str) -> None:
    given = {"image": image}
    assert {helm_chart.container(found)["image"] for found in with_pods(helm_chart.render(given))} == {shown}


def files_of(found: Object, objects: list[Object], folder: Path) -> tuple[Path, dict[str, str]]:
    """The settings file and the variables of a pod, with the files of its secrets in a folder."""
    issued = trustme.CA().issue_cert("mail.example.com")
    written = {
        "database_url": "postgresql://postroad_service@db.example.com/postroad?sslmode=verify-full",
        "installation_key": SECRET_KEY,
        "relay_password": "secret",
        "tls.crt": issued.cert_chain_pems[0].bytes().decode(),
        "tls.key": issued.private_key_pem.bytes().decode(),
    }
    for name, text in written.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o600)
    mounts = {mount["mountPath"] for mount in helm_chart.container(found)["volumeMounts"]}

    def moved(text: str) -> str:
        places = ("/run/secrets/postroad", "/run/secrets/tls")
        for place in places:
            assert place in mounts or place not in text
            text = text.replace(place, str(folder))
        return text

    file = folder / "postroad.toml"
    file.write_text(moved(helm_chart.settings_text(objects)))
    file.chmod(0o600)
    variables = {one["name"]: moved(one["value"]) for one in helm_chart.container(found)["env"] if "value" in one}
    return file, variables


@each_values
def test_a_pod_has_valid_settings_and_the_ports_of_its_role(
    values: Values, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    objects = helm_chart.render(values)
    for role, found in deployments(objects).items():
        file, variables = files_of(found, objects, tmp_path)
        assert helm_chart.container(found)["volumeMounts"][0]["mountPath"] == "/etc/postroad"
        with monkeypatch.context() as environment:
            for name, value in variables.items():
                environment.setenv(name, value)
            said = cli_runner.run("check-config", "--config", str(file), "--json")
        assert said.exit_code == 0, said.output
        assert json.loads(said.stdout)["warnings"] == []
        settings = config.load(file, environment=variables)
        assert settings.operator.is_reachable
        assert settings.database.migrate_at_start is False
        assert settings.http.base_url.startswith("https://mail.example.com")
        assert settings.metrics.listen == "0.0.0.0:9025"
        listens = {
            "api": {"http": settings.http.listen},
            "inbound": {"smtp": settings.inbound.listen},
            "submission": {"submission": settings.submission.listen, "submissions": settings.submission.tls_listen},
        }
        wanted = {"metrics": settings.metrics.listen, **listens.get(role, {})}
        shown = {one["name"]: f"0.0.0.0:{one['containerPort']}" for one in helm_chart.container(found)["ports"]}
        assert shown == wanted


def test_settings_of_the_values_arrive_as_they_were_written() -> None:
    settings: dict[str, Any] = dict(FULL["settings"])
    tables = tomllib.loads(helm_chart.settings_text(helm_chart.render(FULL)))
    for section, given in settings.items():
        if isinstance(given, list):
            assert tables[section] == given
        else:
            assert {name: tables[section][name] for name in given} == given
    assert (type(tables["delivery"]["connections"]), type(tables["bounce_guard"]["suspend_percent"])) == (int, float)
    documented = tomllib.loads(helm_chart.settings_text(helm_chart.render()))
    assert documented["delivery"]["hostname"] == "mail.example.com"
    # A default of the chart that is taken away is a default of the service again.
    without = helm_chart.render({"settings": {"http": {"processes": None}}})
    assert "processes" not in tomllib.loads(helm_chart.settings_text(without))["http"]


def test_changed_settings_start_new_pods() -> None:
    def annotations(*values: Values) -> set[str]:
        found = deployments(helm_chart.render(*values)).values()
        return {one["spec"]["template"]["metadata"]["annotations"]["checksum/settings"] for one in found}

    (before,), (same,) = annotations(), annotations({"roles": {"api": {"replicas": 3}}})
    (after,) = annotations({"settings": {"logs": {"level": "debug"}}})
    assert before == same != after


def test_a_pod_is_probed_where_the_service_answers() -> None:
    served = {route.path for route in monitoring.health_routes(lambda: False)}
    for found in deployments(helm_chart.render()).values():
        probes = {
            kind: helm_chart.container(found)[f"{kind}Probe"]["httpGet"]
            for kind in ("startup", "liveness", "readiness")
        }
        assert {kind: probe["path"] for kind, probe in probes.items()} == {
            "startup": "/healthz",
            "liveness": "/healthz",
            "readiness": "/readyz",
        }
        assert {probe["path"] for probe in probes.values()} <= served
        assert {probe["port"] for probe in probes.values()} <= port_names(found)


def test_a_stop_is_waited_for_longer_than_the_grace_times() -> None:
    times = {helm_chart.pod(one)["terminationGracePeriodSeconds"] for one in deployments(helm_chart.render()).values()}
    assert min(times) > test_settings.longest_stop()


def test_the_services_and_the_ingress_lead_to_ports_of_pods() -> None:
    objects = helm_chart.render()
    found, services = deployments(objects), helm_chart.of_kind(objects, "Service")
    for one in services.values():
        assert {port["targetPort"] for port in one["spec"]["ports"]} <= port_names(found[helm_chart.component(one)])
    assert {name: [port["port"] for port in one["spec"]["ports"]] for name, one in services.items()} == {
        "mail-api": [80],
        "mail-inbound": [25],
        "mail-submission": [587, 465],
    }
    # Limits and the log are about the address of the client.
    assert {one["spec"].get("externalTrafficPolicy") for name, one in services.items() if name != "mail-api"} == {
        "Local"
    }
    (ingress,) = helm_chart.of_kind(objects, "Ingress").values()
    ((rule,), (tls,)) = (ingress["spec"]["rules"], ingress["spec"]["tls"])
    (path,) = rule["http"]["paths"]
    assert path["backend"]["service"] == {"name": "mail-api", "port": {"name": "http"}}
    assert (rule["host"], tls) == ("mail.example.com", {"hosts": ["mail.example.com"], "secretName": "postroad-tls"})
    assert {"nginx.ingress.kubernetes.io/proxy-body-size", "cert-manager.io/cluster-issuer"} == ingress["metadata"][
        "annotations"
    ].keys()


def test_the_network_policies_open_the_ports_of_pods_and_nothing_else() -> None:
    objects = helm_chart.render()
    found = deployments(objects)
    open_to = dict.fromkeys(found, frozenset[str]())
    for policy in helm_chart.of_kind(objects, "NetworkPolicy").values():
        assert policy["spec"]["policyTypes"] == ["Ingress"]
        labels = policy["spec"]["podSelector"]["matchLabels"]
        allowed = frozenset(port["port"] for rule in policy["spec"]["ingress"] for port in rule["ports"])
        open_to = {role: ports | allowed if selects(labels, found[role]) else ports for role, ports in open_to.items()}
        anyone = [rule for rule in policy["spec"]["ingress"] if "from" not in rule]
        assert bool(anyone) == (helm_chart.component(policy) in {"inbound", "submission"})
    assert open_to == {role: port_names(one) for role, one in found.items()}
    (test,) = helm_chart.of_kind(objects, "Pod").values()
    peers = helm_chart.of_kind(objects, "NetworkPolicy")["mail-api"]["spec"]["ingress"][0]["from"]
    assert any(
        peer["podSelector"]["matchLabels"].items() <= test["metadata"]["labels"].items()
        for peer in peers
        if "podSelector" in peer
    )


def test_prometheus_gets_the_token_that_the_pods_have() -> None:
    objects = helm_chart.render(FULL)
    (monitor,) = helm_chart.of_kind(objects, "PodMonitor").values()
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    key = endpoint["authorization"]["credentials"]
    assert monitor["metadata"]["labels"]["release"] == "prometheus"
    for found in deployments(objects).values():
        assert selects(monitor["spec"]["selector"]["matchLabels"], found)
        assert endpoint["port"] in port_names(found)
        (token,) = [one for one in helm_chart.container(found)["env"] if one["name"] == "POSTROAD_METRICS__TOKEN"]
        # Without one, the metrics can only be read inside the pod.
        assert token["valueFrom"]["secretKeyRef"] == {**key, "optional": True}
    assert helm_chart.of_kind(helm_chart.render(), "PodMonitor") == {}


REFUSED: dict[str, tuple[Values, str]] = {
    "no image": ({"image": {"repository": ""}}, "image.repository"),
    "digest": ({"image": {"digest": "sha256:12"}}, "image.digest"),
    "unknown value": ({"replicas": 3}, "replicas"),
    "unknown role": ({"roles": {"worker": {"replicas": 1}}}, "worker"),
    "negative": ({"roles": {"api": {"replicas": -1}}}, "roles.api.replicas"),
    "plain HTTP": ({"settings": {"http": {"base_url": "http://mail.example.com"}}}, "settings.http.base_url"),
    "no URL": ({"settings": {"http": {"base_url": None}}}, "base_url"),
    "listen": ({"settings": {"http": {"listen": "0.0.0.0:80"}}}, "settings.http.listen"),
    "database": ({"settings": {"database": {"url": "postgresql://db/postroad"}}}, "settings.database.url"),
    "a password": ({"settings": {"metrics": {"token": "secret"}}}, "settings.metrics.token"),
    "the secret of single sign-on": ({"settings": {"sso": {"client_secret": "x"}}}, "settings.sso.client_secret"),
    "the password of an upstream": ({"settings": {"upstreams": [{"name": "relay", "password": "x"}]}}, "password"),
    "a setting without a section": ({"settings": {"hostname": "mail.example.com"}}, "settings.hostname"),
    "service": ({"roles": {"inbound": {"service": {"type": "Ingress"}}}}, "roles.inbound.service.type"),
    "secret": ({"secret": ""}, "secret"),
}


@pytest.mark.parametrize("values, named", REFUSED.values(), ids=REFUSED)
def test_wrong_values_are_refused_by_name(values: Values, named: str) -> None:
    assert named in helm_chart.refusal(values)


def test_without_values_helm_says_what_is_missing() -> None:
    done = helm_chart.run("template", "mail")
    assert done.returncode != 0
    assert "settings.http.base_url" in done.stderr


def test_every_value_is_explained_once() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    schema = json.loads((CHART / "values.schema.json").read_text())
    assert values.keys() | {"global"} == schema["properties"].keys()
    assert set(schema["properties"]["roles"]["required"]) == values["roles"].keys() == service.ROLES.keys()


def test_the_version_is_that_of_postroad() -> None:
    shown = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (shown["version"], shown["appVersion"]) == (postroad.__version__, postroad.__version__)


def test_the_package_has_the_same_bytes_each_time_and_is_the_chart(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
    made = packages.write(CHART, first, seconds=1_790_000_000)
    assert made == first / f"postroad-{postroad.__version__}.tgz"
    assert packages.write(CHART, second, seconds=1_790_000_000).read_bytes() == made.read_bytes()
    assert helm_chart.run("lint", "--strict", values=(helm_chart.documented_values(),), chart=made).returncode == 0
    assert helm_chart.render(FULL, chart=made) == helm_chart.render(FULL)
