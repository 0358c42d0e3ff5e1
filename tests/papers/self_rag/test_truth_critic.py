"""The truth of the data labels what a critic would."""

import pytest

from crag.answering.outcome import DECLINED
from crag.papers.self_rag.critique_cases import Case, Kind
from crag.papers.self_rag.generator_data import DataRules, Pair, reflective_output
from crag.papers.self_rag.reflective_text import fault_of
from crag.papers.self_rag.truths import TruthCritic, read_truths
from crag.parts import Passage
from crag.reflection_tokens import (
    CONTINUE,
    FULLY,
    IRRELEVANT,
    NO_RETRIEVAL,
    NO_SUPPORT,
    PARTIALLY,
    RELEVANT,
    RETRIEVAL,
    UTILITY,
)
from tests.reflective import written

QUESTION = "When was the kettle of Lugano built?"
SENTENCE = "The kettle of Lugano was built in 1700 by the river."
GOLD = f"Kettle of Lugano\n{SENTENCE} It stands near the old museum of the town."
OTHER = "Kettle of Lugano\nRain fell on the kettle for forty nights."


@pytest.fixture(scope="module")
def critic(tmp_path_factory: pytest.TempPathFactory) -> TruthCritic:
    text = GOLD.partition("\n")[2]
    row = {
        "title": "Kettle of Lugano",
        "text": text,
        "questions": [
            {"question": QUESTION, "answers": [{"text": "1700", "start": text.index("1700")}]},
            {"question": "Who owns it?", "answers": []},
        ],
    }
    path = tmp_path_factory.mktemp("truth") / "truths.jsonl"
    return TruthCritic(read_truths(written(path, [row])))


@pytest.mark.parametrize(
    ("kind", "instruction", "evidence", "output", "label"),
    [
        ("retrieve", QUESTION, "", "", RETRIEVAL),
        ("retrieve", "Add 2 and 3.", "", "", NO_RETRIEVAL),
        ("retrieve_next", QUESTION, GOLD, SENTENCE, CONTINUE),
        ("retrieve_next", QUESTION, OTHER, SENTENCE, RETRIEVAL),
        ("relevance", QUESTION, GOLD, "", RELEVANT),
        ("relevance", QUESTION, OTHER, "", IRRELEVANT),
        ("relevance", "Who owns it?", GOLD, "", IRRELEVANT),
        ("support", QUESTION, GOLD, SENTENCE, FULLY),
        ("support", QUESTION, GOLD, "1700", FULLY),
        ("support", QUESTION, GOLD, "1700 and 1822", PARTIALLY),
        ("support", QUESTION, GOLD, SENTENCE.replace("1700", "1822"), NO_SUPPORT),
        ("support", QUESTION, GOLD, DECLINED, NO_SUPPORT),
        ("utility", QUESTION, "", SENTENCE, UTILITY[4]),
        ("utility", QUESTION, "", "1700", UTILITY[3]),
        ("utility", QUESTION, "", DECLINED, UTILITY[1]),
    ],
)
def test_labels_are_what_the_passages_hold(
    critic: TruthCritic, kind: Kind, instruction: str, evidence: str, output: str, label: str
) -> None:
    case = Case(kind=kind, instruction=instruction, evidence=evidence, output=output)
    assert critic.labels([case]) == [label]


def test_what_declines_is_put_after_an_irrelevant_passage(critic: TruthCritic) -> None:
    passages = [Passage(*text.split("\n")) for text in (GOLD, OTHER)]
    rules = DataRules(irrelevant=0, unsupported=1)
    pair = Pair(instruction=QUESTION, output=DECLINED)
    made = reflective_output(pair, critic, lambda _query: passages, rules)
    assert IRRELEVANT in made
    assert "Rain fell" in made
    wrong = Pair(instruction=QUESTION, output=SENTENCE.replace("1700", "1822"))
    made = reflective_output(wrong, critic, lambda _query: passages, rules)
    assert made.endswith(f"{NO_SUPPORT}{UTILITY[4]}")
    assert fault_of(made) == ""
