"""The Compose file, without Docker."""

from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]


def test_the_page_keeps_conversations_in_the_database_of_the_file() -> None:
    services = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))["services"]
    assert set(services) == {"page", "database", "index"}
    assert "@database/" in services["page"]["environment"]["CRAG_SERVE_DATABASE"]
    assert all(port.startswith("127.0.0.1:") for port in services["page"]["ports"])
    assert "ports" not in services["database"]
