"""The chart renders manifests that Kubernetes accepts, and settings that the service accepts."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from fhirpub import __version__
from fhirpub.config.loader import load, misspelt_variables
from fhirpub.config.settings import Config
from fhirpub.config.webhooks import WebhooksConfig
from fhirpub.testing.service import RunningService
from tests.deploy.tools import run

ROOT = Path(__file__).parents[2]
CHART = ROOT / "deploy" / "helm"
GUIDE = (ROOT / "docs" / "operators.md").read_text(encoding="utf-8")
SECTION = GUIDE.partition("\n## In a cluster\n")[2].partition("\n## ")[0]
(OF_THE_GUIDE,) = re.findall(r"^```yaml\n(.*?)^```$", SECTION, re.DOTALL | re.MULTILINE)
LEAST = """\
image: {repository: registry.example.org/fhirpub}
baseUrl: https://fhir.example.org
store: {url: "mongodb://a.example.org/fhirpub?replicaSet=rs0", keys: a-key}
"""
EVERYTHING = """\
image: {repository: registry.example.org/fhirpub, tag: "1", pullPolicy: Always}
imagePullSecrets: [{name: registry}]
server: {replicas: 3, workers: 3}
dispatcher: {enabled: false}
service: {type: LoadBalancer, port: 80, annotations: {a: b}}
admin:
  enabled: true
  baseUrl: https://admin.example.org
  bootstrapKeyHash: bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb
  peers: [{podSelector: {matchLabels: {app: terraform}}}]
networkPolicy:
  store: {ports: [27017, 27018], peers: [{ipBlock: {cidr: 10.1.0.0/16}}]}
  extraEgress: [{ports: [{port: 6514}]}]
serviceMonitor: {enabled: true, labels: {release: prometheus}}
podAnnotations: {a: b}
podLabels: {c: d}
nodeSelector: {kubernetes.io/arch: arm64}
tolerations: [{key: reserved, operator: Exists}]
affinity: {nodeAffinity: {}}
extraVolumes: [{name: authority, configMap: {name: authority}}]
extraVolumeMounts: [{name: authority, mountPath: /etc/authority}]
extraEnv: [{name: FHIRPUB_LOGS__LEVEL, value: debug}]
"""
VALUES = {"guide": OF_THE_GUIDE, "least": LEAST, "everything": LEAST + EVERYTHING}
_OF_OPERATOR = "monitoring.coreos.com/"


def helm(command: str, folder: Path, *values: str) -> subprocess.CompletedProcess[str]:
    files = []
    for number, text in enumerate(values):
        file = folder / f"{number}.yaml"
        file.write_text(text, encoding="utf-8")
        files.append(f"--values={file}")
    name = "fhirpub" if command == "template" else "--strict"
    return run("helm", command, name, CHART, *files)


def manifests(folder: Path, *values: str) -> list[dict[str, Any]]:
    done = helm("template", folder, *values)
    assert done.returncode == 0, done.stderr
    return [item for item in yaml.safe_load_all(done.stdout) if item]


def pods(found: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return what the deployments run, by their parts."""
    return {
        item["metadata"]["labels"]["app.kubernetes.io/component"]: item["spec"]["template"]["spec"]
        for item in found
        if item["kind"] == "Deployment"
    }


def of_kind(found: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [item for item in found if item["kind"] == kind]


def environment(pod: dict[str, Any]) -> dict[str, str]:
    """Return the variables of a container; the store's URL, which is in the Secret, is ours."""
    given = {item["name"]: item.get("value") for item in pod["containers"][0]["env"]}
    assert given.pop("FHIRPUB_STORAGE__URL") is None
    return {"FHIRPUB_STORAGE__URL": "mongodb://a/fhirpub?replicaSet=rs0", **given}


def settings(folder: Path, found: list[dict[str, Any]], part: str) -> Config:
    (config,) = [item for item in of_kind(found, "ConfigMap") if "fhirpub.toml" in item["data"]]
    file = folder / "fhirpub.toml"
    file.write_text(config["data"]["fhirpub.toml"], encoding="utf-8")
    return load(file, environment=environment(pods(found)[part]))


@pytest.mark.parametrize("name", VALUES)
def test_helm_has_no_remark(tmp_path: Path, name: str) -> None:
    done = helm("lint", tmp_path, VALUES[name])

    assert done.returncode == 0, done.stdout
    assert "0 chart(s) failed" in done.stdout
    assert "[WARNING]" not in done.stdout


@pytest.mark.parametrize("name", VALUES)
def test_kubernetes_accepts_each_manifest(tmp_path: Path, name: str) -> None:
    files = []
    for number, item in enumerate(manifests(tmp_path, VALUES[name])):
        if not item["apiVersion"].startswith(_OF_OPERATOR):
            files.append(tmp_path / f"manifest-{number}.yaml")
            files[-1].write_text(yaml.safe_dump(item), encoding="utf-8")

    assert len(files) >= 7
    done = run("kubectl-validate", "--version=1.30", *files)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_prometheus_operator_accepts_its_manifests(tmp_path: Path) -> None:
    files = []
    for item in manifests(tmp_path, OF_THE_GUIDE):
        if item["apiVersion"].startswith(_OF_OPERATOR):
            files.append(tmp_path / f"{item['kind']}.yaml")
            files[-1].write_text(yaml.safe_dump(item), encoding="utf-8")

    assert {file.stem for file in files} == {"PrometheusRule", "ServiceMonitor"}
    done = run("strict-types", *files)
    assert done.returncode == 0, done.stderr


def test_all_values_that_are_missing_are_named_at_once(tmp_path: Path) -> None:
    done = helm("template", tmp_path)

    assert done.returncode == 1
    assert all(name in done.stderr for name in ("/image/repository", "/baseUrl", "/store"))


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ("replicas: 2", "replicas"),
        ("server: {workers: 0}", "/server/workers"),
        ("store: {keys: ''}", "/store"),
        ("store: {url: 'sqlite:///fhirpub.db'}", "/store"),
        ("metrics: {port: 8080}", "/metrics/port"),
        ("admin: {bootstrapKeyHash: a-key}", "/admin/bootstrapKeyHash"),
        ("baseUrl: fhir.example.org", "/baseUrl"),
    ],
)
def test_a_value_that_cannot_work_is_refused(tmp_path: Path, values: str, named: str) -> None:
    done = helm("template", tmp_path, LEAST, values)

    assert done.returncode == 1
    assert named in done.stderr


@pytest.mark.parametrize("name", VALUES)
def test_the_service_accepts_the_settings_of_each_part(tmp_path: Path, name: str) -> None:
    found = manifests(tmp_path, VALUES[name])

    for part, pod in pods(found).items():
        config = settings(tmp_path, found, part)
        assert config.auth.environment == "production"
        assert config.base_url == "https://fhir.example.org"
        assert config.auth.audience == "https://fhir.example.org/fhir"
        assert not misspelt_variables(environment(pod))


def test_webhooks_are_sent_by_the_dispatchers_or_else_by_the_servers(tmp_path: Path) -> None:
    with_dispatchers = manifests(tmp_path, LEAST)
    without = manifests(tmp_path, LEAST, "dispatcher: {enabled: false}")

    parts = {part: pod["containers"][0]["args"] for part, pod in pods(with_dispatchers).items()}
    assert parts == {"server": ["serve"], "dispatcher": ["dispatch"]}
    assert not settings(tmp_path, with_dispatchers, "server").webhooks.dispatch_in_server
    assert pods(without).keys() == {"server"}
    assert settings(tmp_path, without, "server").webhooks.dispatch_in_server


def test_each_worker_has_a_port_that_is_scraped(tmp_path: Path) -> None:
    found = manifests(tmp_path, LEAST + EVERYTHING)
    config = settings(tmp_path, found, "server")
    (monitor,) = of_kind(found, "ServiceMonitor")
    (service,) = [
        item for item in of_kind(found, "Service") if item["metadata"]["name"].endswith("-metrics")
    ]
    ports = {
        port["name"]: port["containerPort"]
        for port in pods(found)["server"]["containers"][0]["ports"]
        if port["name"].startswith("metrics")
    }

    assert list(ports.values()) == [config.metrics.port + n for n in range(config.server.workers)]
    assert [port["targetPort"] for port in service["spec"]["ports"]] == list(ports)
    assert [item["port"] for item in monitor["spec"]["endpoints"]] == list(ports)


def test_administration_is_served_where_it_is_enabled_and_to_named_peers(tmp_path: Path) -> None:
    without, found = manifests(tmp_path, LEAST), manifests(tmp_path, LEAST + EVERYTHING)
    config = settings(tmp_path, found, "server").admin
    services = {item["metadata"]["name"]: item["spec"] for item in of_kind(found, "Service")}
    (policy,) = of_kind(found, "NetworkPolicy")
    (rule,) = [
        each
        for each in policy["spec"]["ingress"]
        if [port["port"] for port in each["ports"]] == ["admin"]
    ]

    assert settings(tmp_path, without, "server").admin.port == 0
    assert not any("-admin" in item["metadata"]["name"] for item in without)
    assert (config.host, config.base_url) == ("0.0.0.0", "https://admin.example.org")
    assert [port["port"] for port in services["fhirpub-admin"]["ports"]] == [config.port]
    assert rule["from"] == [{"podSelector": {"matchLabels": {"app": "terraform"}}}]


def test_probes_ask_for_what_there_is_and_wait_longer_than_the_store_does(tmp_path: Path) -> None:
    (container,) = pods(manifests(tmp_path, LEAST))["server"]["containers"]
    probes = {name: item for name, item in container.items() if name.endswith("Probe")}
    asked = {name: item["httpGet"]["path"] for name, item in probes.items()}

    assert asked == {
        "startupProbe": "/health/live",
        "livenessProbe": "/health/live",
        "readinessProbe": "/health/ready",
    }
    with RunningService(tmp_path) as service:
        assert {service.request("GET", path).status for path in asked.values()} == {200}
    assert probes["readinessProbe"]["timeoutSeconds"] > Config().storage.deadline_seconds


def test_a_pod_has_the_time_to_finish_its_requests(tmp_path: Path) -> None:
    for pod in pods(manifests(tmp_path, LEAST)).values():
        (command,) = [
            item["lifecycle"]["preStop"]["exec"]["command"] for item in pod["containers"]
        ]
        (waits,) = re.findall(r"sleep\((\d+)\)", command[-1])
        needed = int(waits) + Config().server.drain_seconds
        assert pod["terminationGracePeriodSeconds"] > needed


@pytest.mark.parametrize("part", ["server", "dispatcher"])
def test_a_pod_has_no_rights(tmp_path: Path, part: str) -> None:
    pod = pods(manifests(tmp_path, LEAST))[part]
    (container,) = pod["containers"]

    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["automountServiceAccountToken"] is False
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def test_the_user_of_the_pods_is_that_of_the_image(tmp_path: Path) -> None:
    dockerfile = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    pod = pods(manifests(tmp_path, LEAST))["server"]

    assert f"USER {pod['securityContext']['runAsUser']}:" in dockerfile


def test_the_url_of_the_store_is_in_the_secret_alone(tmp_path: Path) -> None:
    found = manifests(tmp_path, LEAST)
    holding = [item["kind"] for item in found if "a.example.org/fhirpub" in yaml.safe_dump(item)]

    assert holding == ["Secret"]
    assert not of_kind(manifests(tmp_path, OF_THE_GUIDE), "Secret")


def test_a_key_that_is_replaced_reaches_the_processes_and_other_settings_replace_the_pods(
    tmp_path: Path,
) -> None:
    found = manifests(tmp_path, LEAST)
    changed = manifests(tmp_path, LEAST, 'config: |\n  [logs]\n  level = "debug"\n')
    (container,) = pods(found)["server"]["containers"]
    mounts = {item["name"]: item for item in container["volumeMounts"]}

    # Kubernetes never updates what is mounted by subPath.
    assert "subPath" not in mounts["store"]
    keys_file = settings(tmp_path, found, "server").storage.keys_file
    assert keys_file == f"{mounts['store']['mountPath']}/keys"
    annotations = [
        of_kind(each, "Deployment")[0]["spec"]["template"]["metadata"]["annotations"]
        for each in (found, changed)
    ]
    assert annotations[0] != annotations[1]


def test_the_ports_of_webhooks_are_open(tmp_path: Path) -> None:
    policies = of_kind(manifests(tmp_path, LEAST), "NetworkPolicy")

    assert len(policies) == 2
    for policy in policies:
        rules = policy["spec"]["egress"]
        open_ = {port["port"] for rule in rules if "to" not in rule for port in rule["ports"]}
        assert open_ >= {53, *WebhooksConfig().ports}


def test_only_named_peers_reach_the_servers(tmp_path: Path) -> None:
    policies = of_kind(manifests(tmp_path, OF_THE_GUIDE), "NetworkPolicy")
    rules = [rule for policy in policies for rule in policy["spec"]["ingress"]]

    assert len(rules) == 3
    assert all(rule["from"] for rule in rules)


def test_the_chart_is_of_this_release() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))

    assert chart["version"] == chart["appVersion"] == __version__
