"""Help, completion and near misses: what a newcomer meets first."""

import pytest

from tests.commands import crag

COMMANDS = [
    "index", "list", "ask", "chat", "evaluate", "batch", "doctor", "serve",
    "calibrate", "bench",
    "train evaluator", "train critic", "train generator", "train reader", "train reader-data",
    "train encoder",
    "reflect-data generator", "reflect-data critic", "reflect-data pairs",
]  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_examples(command: str) -> None:
    examples = crag(*command.split(), "--help").stdout.partition("Examples:")[2]
    assert f"crag {command.removesuffix(' evaluator')}" in examples


def test_a_shell_completes_commands_and_options() -> None:
    def completed(words: str, number: int) -> list[str]:
        asked = {"_CRAG_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(number)}
        return crag(environment=asked).stdout.split()

    assert completed("crag ev", 1) == ["evaluate"]
    assert "--method" in completed("crag ask --m", 2)


@pytest.mark.parametrize(
    ("arguments", "near"),
    [
        (["evalute"], "evaluate"),
        (["ask", "Why?", "--jsn"], "--json"),
        (["ask", "Why?", "--set", "strip_kept=3"], "did you mean strips_kept"),
        (["ask", "Why?", "--set", "uper=3"], "did you mean upper?"),
    ],
)
def test_what_is_misspelled_gets_the_near_names(arguments: list[str], near: str) -> None:
    done = crag(*arguments)
    assert done.returncode == 2
    said = " ".join(done.stderr.split())
    assert near in said
    assert "max_web_bytes" not in said
