"""`crag prompts` lists what is asked, and starts a folder to change it."""

import json
from pathlib import Path

from crag.prompts import USES
from tests.commands import crag


def test_every_prompt_is_listed_with_its_use_and_placeholders(tmp_path: Path) -> None:
    done = crag("prompts", folder=tmp_path)
    assert done.returncode == 0
    for name, use in USES.items():
        assert name in done.stdout
        assert all(f"${one}" in done.stdout for one in use.needed)


def test_a_copy_is_used_once_it_is_named(tmp_path: Path) -> None:
    done = crag("prompts", "--copy", "mine", folder=tmp_path)
    assert f"{len(USES)} prompts copied to mine" in done.stdout
    assert "export CRAG_PROMPTS=mine" in done.stdout
    (tmp_path / "mine" / "judge_fact.md").unlink()
    done = crag("prompts", "--json", folder=tmp_path, environment={"CRAG_PROMPTS": "mine"})
    places = {row["name"]: row["file"] for row in json.loads(done.stdout)}
    assert places["answer_popqa"] == str(Path("mine", "answer_popqa.md"))
    assert places["judge_fact"] == "packaged"


def test_doctor_and_ask_say_what_is_wrong_with_a_prompt(tmp_path: Path) -> None:
    (tmp_path / "answer_arc.md").write_text("[user]\n$question\n", encoding="utf-8")
    wrong = {"CRAG_PROMPTS": str(tmp_path)}
    done = crag("doctor", "--json", folder=tmp_path, environment=wrong)
    (row,) = (one for one in json.loads(done.stdout) if one["part"] == "prompts")
    assert row["state"] == "broken"
    assert "answer_arc.md, line 1: it lacks $knowledge, $options" in row["todo"]
    done = crag("prompts", folder=tmp_path, environment=wrong)
    assert done.returncode == 2
    assert "answer_arc.md, line 1" in done.stderr.replace("\n", " ")


def test_a_script_is_told_the_files_of_a_copy(tmp_path: Path) -> None:
    done = crag("prompts", "--copy", "mine", "--json", folder=tmp_path)
    files = json.loads(done.stdout)
    assert {Path(one).stem for one in files} >= set(USES)
    assert all((tmp_path / one).is_file() for one in files)
