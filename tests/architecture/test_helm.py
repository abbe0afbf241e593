"""The Helm chart renders what kustomize does. Both programs are real: ``make .venv/kubernetes``."""

import json
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from scripts.release import build
from tests.architecture.test_kubernetes import CUSTOM, FOLDER, SECRET, VERSIONS, variables
from tests.support.source import ROOT
from tests.support.tables import each_case

CHART = ROOT / "deploy" / "helm"
PROGRAMS = ROOT / ".venv" / "kubernetes"
NAMESPACE = "notifyproject"
CHECKSUM = "checksum/settings"
Manifest = dict[str, Any]

VALUES: Manifest = yaml.safe_load((CHART / "values.yaml").read_text())
EXAMPLE = {
    "image": {"repository": "registry.example.com/notifyproject", "tag": "2026.12"},
    "settings": {
        "ALLOWED_HOSTS": "notify.example.org",
        "PUBLIC_URL": "https://notify.example.org",
        "INBOX_ORIGINS": "https://app.example.org",
    },
    "ingress": {"host": "notify.example.org"},
    "autoscaling": {"enabled": True},
    "monitoring": {"enabled": True},
}
"""The values of deploy/kubernetes/example."""


def run(program: str, *words: str, text: str = "") -> subprocess.CompletedProcess[str]:
    path = PROGRAMS / program
    assert path.exists(), "run `make .venv/kubernetes`"
    return subprocess.run(
        [str(path), *words], input=text, capture_output=True, text=True, check=False
    )


def helm(*words: str, values: Mapping[str, Any]) -> subprocess.CompletedProcess[str]:
    options = ("--namespace", NAMESPACE, "--kube-version", VERSIONS[-1], "--values", "-")
    command = ("template", "notify", str(CHART), *options, *words)
    return run("helm", *command, text=json.dumps(values))


def rendered(values: Mapping[str, Any]) -> dict[str, Manifest]:
    done = helm(values=values)
    assert done.returncode == 0, done.stderr
    return by_name(done.stdout)


def by_name(text: str) -> dict[str, Manifest]:
    manifests = [each for each in yaml.safe_load_all(text) if each]
    return {f"{each['kind']}/{each['metadata']['name']}": each for each in manifests}


def kustomized(folder: Path) -> dict[str, Manifest]:
    done = run("kubectl", "kustomize", str(folder))
    assert done.returncode == 0, done.stderr
    # The name of the settings ends in a hash, where the chart has a checksum in the pods.
    text = re.sub(r"\bnotifyproject-settings-\w+", "notifyproject-settings", done.stdout)
    found = by_name(text)
    found.pop(f"Namespace/{NAMESPACE}", None)
    for manifest in found.values():
        manifest["metadata"].pop("namespace", None)
    return found


def as_kustomized(found: dict[str, Manifest]) -> dict[str, Manifest]:
    """Return manifests of the chart without what a chart does in another way."""
    job = found.pop("Job/migrate-1")
    job["metadata"]["name"] = "migrate"
    found["Job/migrate"] = job
    for manifest in found.values():
        metadata = manifest.get("spec", {}).get("template", {}).get("metadata", {})
        if "annotations" in metadata:
            assert re.fullmatch(r"[0-9a-f]{64}", metadata.pop("annotations")[CHECKSUM])
    return found


@pytest.mark.slow
def test_default_values_render_the_base() -> None:
    tag = yaml.safe_load((CHART / "Chart.yaml").read_text())["appVersion"]
    wanted = kustomized(FOLDER / "base")
    for manifest in wanted.values():
        pod = manifest.get("spec", {}).get("template", {}).get("spec", {})
        for container in (*pod.get("containers", ()), *pod.get("initContainers", ())):
            container["image"] = f"{container['image']}:{tag}"
    assert as_kustomized(rendered({})) == wanted


@pytest.mark.slow
def test_values_of_the_example_render_the_example() -> None:
    assert as_kustomized(rendered(EXAMPLE)) == kustomized(FOLDER / "example")


ELSEWHERE = {
    "image": {"pullSecrets": ["registry"]},
    "secret": "notify",
    "worker": {"replicas": 5, "env": {"WORKER_THREADS": "32"}},
    "pods": {
        "annotations": {"example.com/team": "mail"},
        "nodeSelector": {"pool": "mail"},
        "tolerations": [{"key": "pool", "operator": "Exists"}],
        "priorityClassName": "high",
    },
    "ingress": {"className": "nginx", "annotations": {"example.com/a": "b"}},
    "networkPolicies": {"from": ["proxy"], "storePorts": [27018]},
    "autoscaling": {"enabled": True},
    "monitoring": {"enabled": True},
}


@pytest.mark.slow
def test_every_value_reaches_the_manifests_and_each_matches_its_schema() -> None:
    found = rendered(ELSEWHERE)
    for manifest in found.values():
        if manifest["kind"] not in CUSTOM:
            for version in VERSIONS:
                kubernetes_validate.validate(manifest, version, strict=True)
    web, worker = (found[f"Deployment/{name}"]["spec"] for name in ("web", "worker"))
    assert "replicas" not in web
    pod = web["template"]["spec"]
    assert pod["nodeSelector"] == {"pool": "mail"}
    assert pod["tolerations"] == [{"key": "pool", "operator": "Exists"}]
    assert pod["priorityClassName"] == "high"
    assert pod["imagePullSecrets"] == [{"name": "registry"}]
    assert pod["containers"][0]["envFrom"][1] == {"secretRef": {"name": "notify"}}
    assert web["template"]["metadata"]["annotations"]["example.com/team"] == "mail"
    environment = worker["template"]["spec"]["containers"][0]["env"]
    assert environment == [{"name": "WORKER_THREADS", "value": "32"}]
    assert found["Ingress/notifyproject"]["spec"]["ingressClassName"] == "nginx"
    assert found["Ingress/notifyproject"]["metadata"]["annotations"] == {"example.com/a": "b"}
    stores = found["NetworkPolicy/to-stores"]["spec"]["egress"][1]
    assert stores == {"ports": [{"port": 27018}]}
    (token,) = found["TriggerAuthentication/metrics"]["spec"]["secretTargetRef"]
    assert token["name"] == "notify"


@pytest.mark.slow
def test_parts_are_left_out() -> None:
    off = {"enabled": False}
    kinds = {name.partition("/")[0] for name in rendered({"ingress": off, "networkPolicies": off})}
    assert kinds == {"ConfigMap", "Deployment", "Job", "PodDisruptionBudget", "Service"}


@pytest.mark.slow
def test_changed_setting_restarts_the_pods() -> None:
    before, after = (
        rendered({"settings": settings})["Deployment/beat"]["spec"]["template"]["metadata"]
        for settings in ({}, {"EMAIL_FROM": "shop@example.com"})
    )
    assert before["annotations"][CHECKSUM] != after["annotations"][CHECKSUM]


@pytest.mark.slow
@each_case(
    "values, problem",
    [
        ({"settings": {"SENDGRID_API_KEY": "SG.x"}}, "settings.SENDGRID_API_KEY is a secret"),
        ({"settings": {"PROVIDER_EU_API_KEY": "SG"}}, "settings.PROVIDER_EU_API_KEY is a secret"),
        ({"settings": {"TRUSTED_PROXIES": 1}}, "got number, want string"),
        ({"settings": {"PUBLIC_URL": "notify.example.com"}}, "does not match pattern"),
        ({"setings": {}}, "additional properties 'setings' not allowed"),
        ({"web": {"replica": 3}}, "additional properties 'replica' not allowed"),
        ({"worker": {"replicas": "3"}}, "got string, want integer"),
        ({"networkPolicies": {"storePorts": [0]}}, "minimum: got 0, want 1"),
    ],
)
def test_wrong_value_is_refused(values: Manifest, problem: str) -> None:
    done = helm(values=values)
    assert done.returncode != 0
    assert problem in done.stderr


@pytest.mark.slow
def test_chart_passes_helms_own_rules_as_it_is_packed(tmp_path: Path) -> None:
    archive = tmp_path / "notifyproject.tgz"
    archive.write_bytes(build.packed_chart(ROOT, seconds=1_800_000_000))
    done = run("helm", "lint", "--strict", str(archive))
    assert done.returncode == 0, done.stdout


def test_settings_and_secret_are_those_of_the_base() -> None:
    assert VALUES["settings"] == variables(FOLDER / "base" / "settings.env")
    assert VALUES["secret"] == SECRET


def test_schema_has_every_value() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    assert set(schema["properties"]) - {"global"} == set(VALUES)
