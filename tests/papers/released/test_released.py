"""Ours gives what CRAG's released programs gave; where a checkout is, they are asked again.

`released.jsonl` has what the programs answered to made-up inputs, which a seed draws anew.
"""

from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from crag.papers.released import crag_inputs, official_crag
from crag.papers.released.official import as_json, program, recordings, stand_in
from crag.reflection_tokens import TOKENS

PROGRAM = """
from somewhere_else import LLM


def format_prompt(i, task, question, paragraph=None):
    return "Read " + paragraph + " and say: " + question


def main():
    import sys
    given = dict(zip(sys.argv[1::2], sys.argv[2::2]))
    kinds = []
    for name in ("internal", "external", "combined"):
        with open(given["--" + name + "_knowledge_path"]) as file:
            kinds.append([line.strip() for line in file])
    with open(given["--input_file"]) as file:
        pairs = [line.rstrip("\\n") for line in file]
    asked = list(dict.fromkeys(pair.split(" [SEP] ")[0] for pair in pairs))
    upper, lower = float(given["--upper_threshold"]), -float(given["--lower_threshold"])
    model, answers = LLM(), []
    for place, (question, *texts) in enumerate(zip(asked, *kinds)):
        best = max(judged(pair) for pair in pairs[place * 10 : place * 10 + 10])
        text = texts[0] if best >= upper else texts[2] if best >= lower else texts[1]
        written = model.generate([format_prompt(0, "", question, text)], None)[0].outputs[0].text
        for token in deleted:
            written = written.replace(token, "")
        answers.append(written)
    with open(given["--output_file"], "w") as file:
        file.write("\\n".join(answers))
"""


@pytest.fixture(scope="module")
def recorded() -> dict[str, list[Any]]:
    """Seed and answer of everything that was recorded, by the name of the case."""
    by_case = defaultdict(list)
    for case, seed, answer in recordings(official_crag.CASES, official_crag.RECORDED):
        by_case[case.name].append((seed, answer))
    return by_case


def test_every_recorded_answer_is_ours(recorded: dict[str, list[Any]]) -> None:
    assert list(recorded) == [case.name for case in official_crag.CASES]
    assert sum(map(len, recorded.values())) > 300
    for case in official_crag.CASES:
        pairs = [(as_json(case.ours(seed)), answer) for seed, answer in recorded[case.name]]
        assert [pair for pair in pairs if pair[0] != pair[1]] == [], case.name


def test_what_was_recorded_has_what_programs_stumble_over(recorded: dict[str, list[Any]]) -> None:
    actions = [action for _, action in recorded["action"]]
    assert min(map(actions.count, ("correct", "ambiguous", "incorrect"))) > 10
    whole = [text for _, text in recorded["refinement, selection"]]
    assert any("  " in text for text in whole)
    spaced = [strip for _, strips in recorded["fixed_num, passages as read"] for strip in strips]
    assert any(strip != strip.strip() for strip in spaced)
    cleaned = [answer for _, answer in recorded["answers"]]
    assert sum("[Continue to Use Evidence]" in answer for answer in cleaned) > 3
    assert sum("[Relevant]" in answer or "\n" in answer for answer in cleaned) == 0
    means = {mean for _, mean in recorded["scores of answers"]}
    assert len(means) > 3


@pytest.mark.parametrize(
    ("text", "same"), [(PROGRAM, True), (PROGRAM.replace("line.strip()", "line[1:]"), False)]
)
def test_the_whole_inference_is_compared(tmp_path: Path, text: str, same: bool) -> None:
    """With a program of our own, and with one that differs in a space."""
    (tmp_path / "there.py").write_text(text, "utf-8")
    asked = ("popqa", "llama", True)
    with program(tmp_path, "there", {"somewhere_else": stand_in(LLM=None)}) as loaded:
        loaded.judged = crag_inputs.judged
        loaded.deleted = (*TOKENS[:2], *TOKENS[3:], "</s>", "\n", "<|endoftext|>")
        programs = official_crag.Released(loaded, tmp_path)
        found = [
            (programs.infer(*asked, seed), official_crag.infer(loaded, *asked, seed))
            for seed in range(3)
        ]
    assert all((theirs == ours) == same and len(ours) > 4 for theirs, ours in found)
    assert any("\t" in prompt for _, ours in found for prompt, _ in ours)
