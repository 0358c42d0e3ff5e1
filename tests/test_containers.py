"""Dockerfile and Compose file, checked without Docker."""

import subprocess
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
BIN = Path(sys.executable).parent


def test_the_dockerfile_has_no_known_faults() -> None:
    subprocess.run([BIN / "hadolint", ROOT / "Dockerfile"], check=True)


def test_the_compose_file_fits_the_schema_of_compose() -> None:
    schema = ["--builtin-schema", "vendor.compose-spec"]
    command = [sys.executable, "-m", "check_jsonschema", *schema, ROOT / "compose.yaml"]
    subprocess.run(command, check=True, capture_output=True)


def test_the_page_keeps_conversations_in_the_database_of_the_file() -> None:
    services = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))["services"]
    assert set(services) == {"page", "database", "index"}
    assert "@database/" in services["page"]["environment"]["CRAG_SERVE_DATABASE"]
    assert all(port.startswith("127.0.0.1:") for port in services["page"]["ports"])
    assert "ports" not in services["database"]
