"""Kubernetes manifests: their schemas, and what they refer to.

``make kubernetes`` runs the same tests on the manifests of the example as kubectl renders them.
"""

import os
import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from django.core.management import get_commands
from django.urls import resolve

from api.inbox.views import STREAM_PATH
from domain.states import Priority
from monitoring import prometheus
from notifyproject import healthcheck
from notifyproject.settings.variables import VARIABLES
from tests.support.source import ROOT
from tests.support.tables import each_case

FOLDER = ROOT / "deploy" / "kubernetes"
VERSIONS = ("1.30", "1.37")
"""The oldest version that has all fields, and the newest with a published schema."""
NAME, PART = "app.kubernetes.io/name", "app.kubernetes.io/component"
PROGRAMS = {"web", "stream", "worker", "urgent", "beat"}
SETTINGS, SECRET = "notifyproject-settings", "notifyproject"
SHUTDOWN_SECONDS = 30
"""How long a program takes at most after SIGTERM: docs/guides/deploy.md."""
Document = dict[str, Any]


def _read(path: Path) -> list[Document]:
    return [manifest for manifest in yaml.safe_load_all(path.read_text()) if manifest]


def _manifests() -> list[Document]:
    if rendered := os.environ.get("KUBERNETES_MANIFESTS"):
        return _read(Path(rendered))
    paths = sorted(FOLDER.rglob("*.yaml"))
    return [
        manifest for path in paths if path.name != "kustomization.yaml" for manifest in _read(path)
    ]


MANIFESTS = _manifests()
BY_NAME = {f"{manifest['kind']}/{manifest['metadata']['name']}": manifest for manifest in MANIFESTS}
CUSTOM = ("ScaledObject", "TriggerAuthentication", "ServiceMonitor")
"""Kinds of operators: Kubernetes has no schema of them."""


def workloads() -> Iterator[tuple[str, Document]]:
    """Yield each Deployment and Job with its name."""
    for manifest in MANIFESTS:
        if manifest["kind"] in ("Deployment", "Job"):
            yield manifest["metadata"]["name"], manifest


def containers(workload: Document) -> list[Document]:
    pod = workload["spec"]["template"]["spec"]
    return [*pod["containers"], *pod.get("initContainers", [])]


def command_of(name: str) -> list[str]:
    (container,) = BY_NAME[f"Deployment/{name}"]["spec"]["template"]["spec"]["containers"]
    return list(container["command"])


def labels_match(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    wanted = selector.get("matchLabels", selector if "matchExpressions" not in selector else {})
    return wanted.items() <= labels.items() and all(
        labels.get(matchexpression["key"]) in matchexpression["values"]
        for matchexpression in selector.get("matchExpressions", ())
    )


def variables(path: Path) -> dict[str, str]:
    lines = [line for line in path.read_text().splitlines() if line and line[0] != "#"]
    return dict(line.split("=", 1) for line in lines)


PODS = {name: workload["spec"]["template"] for name, workload in workloads()}


@each_case("name", BY_NAME)
@each_case("version", VERSIONS)
def test_manifest_matches_the_schema_of_its_kind(name: str, version: str) -> None:
    if BY_NAME[name]["kind"] not in CUSTOM:
        kubernetes_validate.validate(BY_NAME[name], version, strict=True)


def test_every_file_is_a_resource_and_every_resource_a_file() -> None:
    for path in FOLDER.rglob("kustomization.yaml"):
        (customization,) = _read(path)
        listed = set(customization["resources"]) | set(customization.get("components", ()))
        files = {file.name for file in path.parent.glob("*.yaml")} - {path.name}
        assert files == {name for name in listed if "/" not in name}
        for name in listed:
            assert (path.parent / name).exists()


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_program_runs_the_command_of_compose(name: str) -> None:
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    command = services[name].get("command")
    if command is None:
        (text,) = re.findall(r"^CMD \[(.+)\]$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
        command = shlex.split(text.replace(",", " "))
    assert command_of(name) == command


def test_all_programs_wait_for_the_migrations_of_their_version() -> None:
    assert set(PODS) == PROGRAMS | {"migrate"}
    (migrate,) = PODS["migrate"]["spec"]["containers"]
    assert migrate["command"] == ["python", "manage.py", "migrate", "--no-input"]
    for name in PROGRAMS:
        (wait,) = PODS[name]["spec"]["initContainers"]
        assert wait["command"] == ["python", "manage.py", "migrate", "--check"]
        assert wait["command"][2] in get_commands()


@each_case("name", PODS)
def test_pod_runs_without_privileges_on_a_read_only_root(name: str) -> None:
    pod = PODS[name]["spec"]
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert f"USER {pod['securityContext']['runAsUser']}:" in (ROOT / "Dockerfile").read_text()
    (writable,) = pod["volumes"]
    assert "emptyDir" in writable
    for container in [*pod["containers"], *pod.get("initContainers", ())]:
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert container["volumeMounts"] == [{"name": writable["name"], "mountPath": "/tmp"}]
        assert set(container["resources"]["requests"]) == {"cpu", "memory"}
        assert "memory" in container["resources"]["limits"]


@each_case("name", PODS)
def test_container_gets_the_settings_and_the_secret(name: str) -> None:
    for container in containers({"spec": {"template": PODS[name]}}):
        settings, secret = container["envFrom"]
        assert settings["configMapRef"]["name"].startswith(SETTINGS)
        assert secret == {"secretRef": {"name": SECRET}}
        assert {variable["name"] for variable in container.get("env", ())} <= VARIABLES.keys()


def test_example_changes_only_settings_that_the_base_has() -> None:
    (example,) = _read(FOLDER / "example" / "kustomization.yaml")
    (changes,) = example["configMapGenerator"]
    names = {literal.partition("=")[0] for literal in changes["literals"]}
    assert names <= variables(FOLDER / "base" / "settings.env").keys()


def probes(name: str) -> Iterator[Document]:
    (container,) = PODS[name]["spec"]["containers"]
    assert {"startupProbe", "livenessProbe"} <= set(container)
    yield from (probe for key, probe in container.items() if key.endswith("Probe"))


@pytest.mark.parametrize("name", ["worker", "urgent", "beat"])
def test_program_without_a_port_is_probed_by_its_health_check(name: str) -> None:
    program = "worker" if name == "urgent" else name
    assert program in healthcheck.HEARTBEATS
    for probe in probes(name):
        command = ["python", "manage.py", "healthcheck", program]
        assert probe["exec"]["command"] == command


@pytest.mark.parametrize("name", ["web", "stream"])
def test_program_with_a_port_is_probed_at_a_route_of_its_own(name: str) -> None:
    (container,) = PODS[name]["spec"]["containers"]
    (port,) = container["ports"]
    assert port["containerPort"] == healthcheck.PORTS[name]
    for probe in probes(name):
        assert probe["httpGet"]["port"] == port["name"]
        if name == "web":
            assert resolve(probe["httpGet"]["path"]).url_name in ("healthz", "readyz")
        else:
            assert probe["httpGet"]["path"] == "/healthz"


def test_pod_has_time_to_drain() -> None:
    for name in PROGRAMS:
        (container,) = PODS[name]["spec"]["containers"]
        sleep = container.get("lifecycle", {}).get("preStop", {}).get("sleep", {}).get("seconds", 0)
        # Only a program with a port can get new requests while it ends.
        assert (sleep > 0) is ("ports" in container)
        words = container["command"]
        named = words.index("--graceful-timeout") + 1 if "--graceful-timeout" in words else None
        takes = int(words[named]) if named else SHUTDOWN_SECONDS if name != "beat" else 0
        assert PODS[name]["spec"]["terminationGracePeriodSeconds"] >= sleep + takes + 5


def test_selectors_match_pods() -> None:
    labels = {name: pod["metadata"]["labels"] for name, pod in PODS.items()}
    for name, workload in workloads():
        assert labels[name] == {NAME: "notifyproject", PART: name}
        if workload["kind"] == "Deployment":
            assert labels_match(workload["spec"]["selector"], labels[name])
    for manifest in MANIFESTS:
        spec, kind, name = manifest.get("spec", {}), manifest["kind"], manifest["metadata"]["name"]
        if kind in ("Service", "PodDisruptionBudget"):
            assert [pod for pod in labels if labels_match(spec["selector"], labels[pod])] == [name]
        elif kind == "NetworkPolicy":
            assert any(labels_match(spec["podSelector"], of) for of in labels.values())
    disrupted = {
        manifest["metadata"]["name"]
        for manifest in MANIFESTS
        if manifest["kind"] == "PodDisruptionBudget"
    }
    assert disrupted == PROGRAMS


def test_services_and_ingress_lead_to_the_ports_of_the_programs() -> None:
    for name in ("web", "stream"):
        (port,) = BY_NAME[f"Service/{name}"]["spec"]["ports"]
        (container,) = PODS[name]["spec"]["containers"]
        assert port["targetPort"] == container["ports"][0]["name"]
        assert port["port"] == container["ports"][0]["containerPort"]
    (rule,) = BY_NAME["Ingress/notifyproject"]["spec"]["rules"]
    paths = {
        path["path"]: (path["pathType"], path["backend"]["service"]["name"])
        for path in rule["http"]["paths"]
    }
    (exact,) = (path for path, target in paths.items() if target == ("Exact", "stream"))
    assert exact == STREAM_PATH
    assert paths["/"] == ("Prefix", "web")


def test_every_pod_reaches_only_what_it_needs() -> None:
    policies = {
        manifest["metadata"]["name"]: manifest["spec"]
        for manifest in MANIFESTS
        if "Network" in manifest["kind"]
    }
    assert policies["deny-all"]["policyTypes"] == ["Ingress", "Egress"]
    assert not {"ingress", "egress"} & policies["deny-all"].keys()
    labels = {name: pod["metadata"]["labels"] for name, pod in PODS.items()}
    senders = {
        n for n in labels if labels_match(policies["to-providers"]["podSelector"], labels[n])
    }
    assert senders == {"web", "worker", "urgent"}
    (provider,) = policies["to-providers"]["egress"]
    assert "169.254.0.0/16" in provider["to"][0]["ipBlock"]["except"]
    reached = {n for n in labels if labels_match(policies["from-proxy"]["podSelector"], labels[n])}
    assert reached == {"web", "stream"}


def test_autoscalers_read_metrics_that_exist() -> None:
    scaled = [manifest for manifest in MANIFESTS if manifest["kind"] == "ScaledObject"]
    assert {scaler["spec"]["scaleTargetRef"]["name"] for scaler in scaled} == {"worker", "urgent"}
    wanted = {
        f'{prometheus.PREFIX}_oldest_due_seconds{{priority="{priority}"}}' for priority in Priority
    }
    triggers = [trigger for scaler in scaled for trigger in scaler["spec"]["triggers"]]
    assert {trigger["metadata"]["valueLocation"] for trigger in triggers} == wanted
    for scaling in triggers:
        host = re.fullmatch(
            r"http://(\w+)\.notifyproject\.svc:(\d+)/metrics", scaling["metadata"]["url"]
        )
        assert host is not None
        (port,) = BY_NAME[f"Service/{host[1]}"]["spec"]["ports"]
        assert port["port"] == int(host[2])
        assert f"TriggerAuthentication/{scaling['authenticationRef']['name']}" in BY_NAME
    assert all(scaler["spec"]["minReplicaCount"] >= 2 for scaler in scaled)
    (token,) = BY_NAME["TriggerAuthentication/metrics"]["spec"]["secretTargetRef"]
    assert (token["name"], token["key"]) == (SECRET, "METRICS_TOKEN")
    target = BY_NAME["HorizontalPodAutoscaler/web"]["spec"]["scaleTargetRef"]
    assert target == {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}


def test_service_monitor_finds_the_metrics_of_the_web() -> None:
    monitor, service = BY_NAME["ServiceMonitor/notifyproject"]["spec"], BY_NAME["Service/web"]
    assert labels_match(monitor["selector"], service["metadata"]["labels"])
    (endpoint,) = monitor["endpoints"]
    assert endpoint["port"] == service["spec"]["ports"][0]["name"]
    assert resolve(endpoint["path"]).url_name == "metrics"
    assert endpoint["authorization"]["credentials"] == {"name": SECRET, "key": "METRICS_TOKEN"}
