"""The examples of deploy/ are what Compose and Kubernetes take, and call `crag` as it is."""

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import typer
import yaml

from crag.cli.app import app
from crag.page.rules import Rules
from crag.runtime.environment import Environment
from crag.server.settings import ServerSettings

DEPLOY = Path(__file__).parents[1] / "deploy"


def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
    return found


def kubernetes() -> list[dict[str, Any]]:
    files = ("kubernetes.yaml", "kubernetes-model.yaml")
    return [one for name in files for one in yaml.safe_load_all((DEPLOY / name).read_text("utf-8"))]


def containers() -> list[dict[str, Any]]:
    specs = [one["spec"].get("template", {}).get("spec", {}) for one in kubernetes()]
    return [container for spec in specs for container in spec.get("containers", [])]


def schema() -> Any:
    """Return Compose's schema, which the package check-jsonschema brings."""
    place = files("check_jsonschema").joinpath("builtin_schemas", "vendor", "compose-spec.json")
    return json.loads(place.read_text("utf-8"))


def test_compose_takes_its_file() -> None:
    jsonschema.validate(compose(), schema())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(compose() | {"services": {"server": {"port": 1}}}, schema())


@pytest.mark.parametrize("found", kubernetes(), ids=lambda one: one["kind"])
def test_kubernetes_takes_each_object(found: dict[str, Any]) -> None:
    version = kubernetes_validate.latest_version()
    kubernetes_validate.validate(found, version, strict=True)
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(found | {"specs": {}}, version, strict=True)


def test_variables_and_commands_are_those_of_crag() -> None:
    services = compose()["services"]
    variables = {entry["name"] for one in containers() for entry in one["env"]}
    for name in ("server", "index", "evaluator"):
        variables |= set(services[name]["environment"])
    serving = {
        f"CRAG_SERVE_{name.upper()}" for name in (*Rules.model_fields, *ServerSettings.model_fields)
    }
    named = {name for name in variables if name.startswith("CRAG_")}
    assert named & serving
    assert named - serving <= {f"CRAG_{name.upper()}" for name in Environment.model_fields}
    commands = [services["server"]["command"]]
    commands += [one["args"] for one in containers() if "serve" in one.get("args", [])]
    for command in commands:
        assert command == [
            "serve", "--postgres", "postgresql://crag@postgres/crag", "--host", "0.0.0.0",  # noqa: S104
            "--workers", "2",
        ]  # fmt: skip


def test_the_server_finds_the_evaluator_and_its_token() -> None:
    """The evaluator listens on the port that the server's address names, and both have a token."""
    settings: dict[str, dict[str, Any]] = {one["name"]: dict(entries(one)) for one in containers()}
    assert settings["server"]["CRAG_EVALUATOR"] == "http://evaluator:2025"
    assert settings["server"]["CRAG_EVALUATOR_FALLBACK"] == "default"
    key = settings["evaluator"]["CRAG_EVALUATOR_TOKEN"]
    assert settings["server"]["CRAG_EVALUATOR_TOKEN"] == key
    service = next(
        one
        for one in kubernetes()
        if (one["kind"], one["metadata"]["name"]) == ("Service", "evaluator")
    )
    assert service["spec"]["ports"] == [{"port": 2025}]

    services = compose()["services"]
    server, evaluator = services["server"]["environment"], services["evaluator"]["environment"]
    assert server["CRAG_EVALUATOR"] == settings["server"]["CRAG_EVALUATOR"]
    assert server["CRAG_EVALUATOR_TOKEN"] == evaluator["CRAG_EVALUATOR_TOKEN"]
    assert services["server"]["depends_on"]["evaluator"] == {"condition": "service_healthy"}

    command = next(one["args"] for one in containers() if one["name"] == "evaluator")
    assert command == services["evaluator"]["command"]
    serving = typer.main.get_group(app).commands["serve-evaluator"]
    assert {one.name: one.default for one in serving.params}["port"] == 2025


def entries(container: dict[str, Any]) -> list[tuple[str, Any]]:
    return [(one["name"], one.get("value", one.get("valueFrom"))) for one in container["env"]]
