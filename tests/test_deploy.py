"""The examples of deploy/ are what Compose and Kubernetes take, and call `crag` as it is."""

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml

from crag.page.guard import Rules
from crag.runtime.environment import Environment
from crag.server.settings import ServerSettings

DEPLOY = Path(__file__).parents[1] / "deploy"


def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
    return found


def kubernetes() -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text("utf-8")))


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
    containers = [
        container
        for one in kubernetes()
        for container in one["spec"].get("template", {}).get("spec", {}).get("containers", [])
    ]
    variables = {entry["name"] for one in containers for entry in one["env"]}
    variables |= set(services["server"]["environment"]) | set(services["index"]["environment"])
    serving = {
        f"CRAG_SERVE_{name.upper()}" for name in (*Rules.model_fields, *ServerSettings.model_fields)
    }
    named = {name for name in variables if name.startswith("CRAG_")}
    assert named & serving
    assert named - serving <= {f"CRAG_{name.upper()}" for name in Environment.model_fields}
    commands = [services["server"]["command"]]
    commands += [one["args"] for one in containers if "serve" in one.get("args", [])]
    for command in commands:
        assert command == [
            "serve", "--postgres", "postgresql://crag@postgres/crag", "--host", "0.0.0.0",  # noqa: S104
            "--workers", "2",
        ]  # fmt: skip
