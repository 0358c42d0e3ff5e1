"""Compare a trained Self-RAG generator with its base, on questions neither was trained on.

    python papers/studies/self_rag_small.py models/self-rag --answerable squad_dev.jsonl
        --unanswerable squad2_held_out.jsonl [--questions 500] [--untrained smollm2]

The files hold paragraphs (`title`, `text`, `questions`). A third of the questions of the first file
lose their paragraph: what is shown of their article does not answer them. Those of the second file
that nothing answers keep theirs, which looks as if it did. Both models see the same passages of the
same article in the same order: the trained one in Self-RAG's short form, the base with a plain
prompt of its own chat form. IsRel and IsSup are compared with the truth on cases that the rules of
`crag reflect-data critic` make from the first file: the trained model by its tokens, the base by
the likelier of the label words in reply to the same question.
"""

import argparse
import json
import random
import re
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal, NamedTuple

import bm25s
from langchain_core.documents import Document

from crag.asking.evaluate import normalised_match
from crag.correction.provenance import offered_document
from crag.graph import build_reflect
from crag.papers.bench.report import table
from crag.papers.loading.records import read_objects
from crag.papers.self_rag.critique_cases import LABELS, TASKS, LabelledCase, case_text
from crag.papers.self_rag.critique_rules import critique_cases
from crag.papers.self_rag.language_base import (
    LanguageModel,
    load_language_model,
    padded_left,
)
from crag.papers.self_rag.reflective_text import fault_of
from crag.papers.self_rag.truths import read_truths
from crag.parts import Candidate, Continuation, Passage, Prefix, SegmentLimits
from crag.reflection.backends.transformers import TransformersReflection
from crag.reflection.prompt_format import decision_prompt, passage_block
from crag.reflection_tokens import RELEVANT, token_ids
from crag.settings import Settings
from crag.torch_models import length_sorted_batches

PASSAGES = 3
TOGETHER = 16
"""Questions of which the passages share a batch."""
LONGEST = 60
"""Tokens of an answer, of both models."""
DECLINES = re.compile(
    r"(?:do(?:es)?|did|is|are|was|were|can|could|has|have)(?:n['’]t| not)\b|\bcannot\b|\bunable\b"
    r"|\bno (?:information|answer|mention|specific)|unanswerable|insufficient",
    re.IGNORECASE,
)
"""Words by which either model declines; generous, in favour of the base."""
PLAIN = (
    "Answer the question from the passages in one short sentence. If they do not answer it, reply "
    "that the passages do not answer it.\n\n{passages}\n\nQuestion: {question}"
)
WORDS: Mapping[str, Mapping[str, str]] = {
    "relevance": {"[Relevant]": "relevant", "[Irrelevant]": "irrelevant"},
    "support": {
        "[Fully supported]": "fully",
        "[Partially supported]": "partially",
        "[No support / Contradictory]": "not",
    },
}
"""What the base is asked to reply for each label."""


class Question(NamedTuple):
    """A question with the passages that both models see."""

    text: str
    answers: list[str]
    """Empty if the passages do not answer it."""
    kind: str
    passages: list[Passage]


class Reply(NamedTuple):
    """What a model answered, and whether its output was well-formed."""

    answer: str
    well_formed: float


def main() -> None:
    """Compare, and print one table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("trained", type=Path)
    parser.add_argument("--answerable", type=Path, required=True)
    parser.add_argument("--unanswerable", type=Path)
    parser.add_argument("--untrained", default="smollm2")
    parser.add_argument("--questions", type=int, default=500)
    parser.add_argument("--cases", type=int, default=100, help="for each label of IsRel and IsSup")
    parser.add_argument("--weights", default="float32", choices=("float32", "bfloat16"))
    parser.add_argument("--output", type=Path, help="write every answer here, as JSONL")
    given = parser.parse_args()
    questions = draw_questions(given.answerable, given.unanswerable, given.questions)
    cases = [
        case
        for case in critique_cases(read_truths(given.answerable), given.cases, seed=7).cases
        if case.kind in WORDS
    ]
    asked = {
        "trained": (reflected, judged_by_tokens),
        "untrained": (plainly_answered, judged_by_words),
    }
    columns: dict[str, dict[str, str]] = {}
    answers: dict[str, list[Reply]] = {}
    for name, place in (("trained", str(given.trained)), ("untrained", given.untrained)):
        answer, judge = asked[name]
        # The first model has left the memory before the second is loaded.
        answers[name], judged = run(place, given.weights, questions, cases, answer, judge)
        columns[name] = measures(questions, answers[name], cases, judged)
        print(name, json.dumps(columns[name], ensure_ascii=False), flush=True)
    rows = [[row, *(columns[name][row] for name in columns)] for row in columns["trained"]]
    print(table(["", *columns], rows))
    if given.output:
        with given.output.open("w", encoding="utf-8") as file:
            for place, one in enumerate(questions):
                told = {name: replies[place].answer for name, replies in answers.items()}
                row = {"question": one.text, "kind": one.kind, "answers": one.answers, **told}
                file.write(json.dumps(row, ensure_ascii=False) + "\n")


def run(  # noqa: PLR0913, PLR0917 - what is asked, and how
    place: str,
    weights: Literal["float32", "bfloat16"],
    questions: Sequence[Question],
    cases: Sequence[LabelledCase],
    answer: Callable[[LanguageModel, Sequence[Question]], list[Reply]],
    judge: Callable[[LanguageModel, LabelledCase], str],
) -> tuple[list[Reply], list[str]]:
    """Load a model, and return its answers and its judgements."""
    model = load_language_model(place, weights=weights)
    return answer(model, questions), [judge(model, case) for case in cases]


def draw_questions(answerable: Path, unanswerable: Path | None, count: int) -> list[Question]:
    """Draw half of the questions as answerable, the others as not, of two kinds."""
    draw = random.Random(0)  # noqa: S311 - a choice of examples, no secret
    made: list[Question] = []
    own = _asked(answerable, lambda one: bool(one["answers"]))
    draw.shuffle(own)
    half = count // 2
    withheld = count - half if unanswerable is None else (count - half) // 2
    nearest = _nearest(answerable)
    for place, (row, one) in enumerate(own[: half + withheld]):
        kept = place < half
        answers = [answer["text"] for answer in one["answers"]]
        others = [
            passage
            for passage in nearest(row["title"], one["question"])
            if passage.text != row["text"] and not normalised_match(passage.text, answers)
        ]
        shown = others[: PASSAGES - kept] + [Passage(row["title"], row["text"])] * kept
        draw.shuffle(shown)
        kind = "answerable" if kept else "paragraph withheld"
        made.append(Question(one["question"], answers if kept else [], kind, shown))
    if unanswerable is not None:
        nearest = _nearest(unanswerable)
        look_alikes = _asked(unanswerable, lambda one: not one["answers"])
        draw.shuffle(look_alikes)
        for row, one in look_alikes[: count - len(made)]:
            others = [p for p in nearest(row["title"], one["question"]) if p.text != row["text"]]
            shown = [*others[: PASSAGES - 1], Passage(row["title"], row["text"])]
            draw.shuffle(shown)
            made.append(Question(one["question"], [], "looks answerable", shown))
    return made


def _asked(path: Path, wanted: Any) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    return [(row, one) for row in read_objects(path) for one in row["questions"] if wanted(one)]


def _nearest(path: Path) -> Any:
    """Return a function that orders the paragraphs of an article by a question, by BM25."""
    articles: dict[str, list[Passage]] = defaultdict(list)
    for row in read_objects(path):
        articles[row["title"]].append(Passage(row["title"], row["text"]))
    indexes: dict[str, Any] = {}

    def nearest(title: str, question: str) -> list[Passage]:
        passages = articles[title]
        if title not in indexes:
            indexes[title] = bm25s.BM25()
            words = bm25s.tokenize([one.text for one in passages], show_progress=False)
            indexes[title].index(words, show_progress=False)
        words = bm25s.tokenize([question], show_progress=False)
        most = min(len(passages), 3 * PASSAGES)
        found, _ = indexes[title].retrieve(words, k=most, show_progress=False)
        return [passages[place] for place in found[0]]

    return nearest


class Gathered:
    """A reflecting model that generates for several questions at once, which is faster."""

    def __init__(self, backend: TransformersReflection) -> None:
        self.approximation = backend.approximation
        self.decide, self._backend, self._lock = backend.decide, backend, threading.Lock()
        self._waiting: list[tuple[Sequence[Continuation], Future[list[Candidate]]]] = []

    def candidates(
        self, continuations: Sequence[Continuation], limits: SegmentLimits
    ) -> list[Candidate]:
        """Generate together with what other threads ask for within a moment."""
        mine: Future[list[Candidate]] = Future()
        with self._lock:
            self._waiting.append((continuations, mine))
            is_first = len(self._waiting) == 1
        if is_first:
            time.sleep(0.5)
            with self._lock:
                asked, self._waiting = self._waiting, []
            joined = [one for part, _ in asked for one in part]
            made = iter(self._backend.candidates(joined, limits))
            for part, future in asked:
                future.set_result([next(made) for _ in part])
        return mine.result()


def reflected(model: LanguageModel, questions: Sequence[Question]) -> list[Reply]:
    """Answer in Self-RAG's short form, always with the passages."""
    backend = Gathered(TransformersReflection.around(model.model, model.tokenizer, batch_size=48))
    graph = build_reflect(backend)
    settings = Settings(retrieval_mode="always", max_new_tokens=LONGEST)

    def reply(question: Question) -> Reply:
        documents = [
            Document(page_content=one.text, metadata={"title": one.title})
            for one in question.passages
        ]
        offered = [offered_document(one, place) for place, one in enumerate(documents)]
        given: Any = {"question": question.text, "reflection": {"passages": offered}}
        state = graph.invoke(given, context=settings)
        outputs = [
            passage_block(question.passages[one["passage"]]) + one["text"]
            for one in state["reflection"]["critiques"]
            if one["passage"] is not None
        ]
        legal = [not fault_of(output) for output in outputs]
        return Reply(state["answer"], sum(legal) / max(1, len(legal)))

    with ThreadPoolExecutor(TOGETHER) as threads:
        return list(threads.map(reply, questions))


def plainly_answered(model: LanguageModel, questions: Sequence[Question]) -> list[Reply]:
    """Answer with a plain prompt; whether the base writes tokens in their order is measured too."""
    prompts = [
        PLAIN.format(
            passages="\n\n".join(f"{one.title}: {one.text}" for one in question.passages),
            question=question.text,
        )
        for question in questions
    ]
    answers = _written(model, [_chat_ids(model, prompt) for prompt in prompts])
    # An article may have no paragraph left when the one with the answer is withheld.
    blocks = ["".join(map(passage_block, one.passages[:1])) for one in questions]
    formed = [
        model.tokenizer(decision_prompt(Prefix(one.text)) + block).input_ids
        for one, block in zip(questions, blocks, strict=True)
    ]
    outputs = _written(model, formed)
    return [
        Reply(answer, float(not fault_of(block + output)))
        for answer, block, output in zip(answers, blocks, outputs, strict=True)
    ]


def _chat_ids(model: LanguageModel, prompt: str) -> list[int]:
    messages = [{"role": "user", "content": prompt}]
    tokenizer: Any = model.tokenizer
    made = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=True)
    ids: list[int] = made["input_ids"]
    return ids


def _written(model: LanguageModel, prompts: Sequence[Sequence[int]]) -> list[str]:
    """Return the greedy continuation of each prompt, special tokens included but the end."""
    import torch

    made: dict[int, str] = {}
    tokenizer: Any = model.tokenizer
    writer: Any = model.model
    for batch in length_sorted_batches([len(one) for one in prompts], TOGETHER):
        ids, mask = padded_left([prompts[place] for place in batch])
        with torch.inference_mode():
            rows = writer.generate(
                input_ids=ids, attention_mask=mask, max_new_tokens=LONGEST, do_sample=False,
                eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id,
            )  # fmt: skip
        for place, row in zip(batch, rows[:, ids.shape[1] :].tolist(), strict=True):
            ended = row.index(tokenizer.eos_token_id) if tokenizer.eos_token_id in row else len(row)
            made[place] = tokenizer.decode(row[:ended]).strip()
    return [made[place] for place in range(len(prompts))]


def judged_by_tokens(model: LanguageModel, case: LabelledCase) -> str:
    """Return the likeliest IsRel or IsSup token of a generator where it has to stand."""
    title, _, text = case.evidence.partition("\n")
    prompt = decision_prompt(Prefix(case.instruction)) + passage_block(Passage(title, text))
    if case.kind == "support":
        prompt += f"{RELEVANT} {case.output}"
    numbers = token_ids(model.tokenizer)
    choices = {label: numbers[label] for label in LABELS[case.kind]}
    return _likeliest(model, model.tokenizer(prompt).input_ids, choices)


def judged_by_words(model: LanguageModel, case: LabelledCase) -> str:
    """Return the label whose word the base is likeliest to reply with."""
    words = WORDS[case.kind]
    asked = ", ".join(dict.fromkeys(words.values()))
    task = TASKS[case.kind].replace("[", "").replace("]", "")
    prompt = f"{task}\n\n{''.join(case_text(case))}\nReply with one word of: {asked}."
    choices = {
        label: model.tokenizer(word, add_special_tokens=False).input_ids[0]
        for label, word in words.items()
    }
    return _likeliest(model, _chat_ids(model, prompt), choices)


def _likeliest(model: LanguageModel, ids: Sequence[int], choices: Mapping[str, int]) -> str:
    import torch

    with torch.inference_mode():
        logits = model.model(input_ids=torch.tensor([ids]), logits_to_keep=1).logits[0, -1]
    return max(choices, key=lambda label: float(logits[choices[label]]))


def measures(
    questions: Sequence[Question],
    replies: Sequence[Reply],
    cases: Sequence[LabelledCase],
    judged: Sequence[str],
) -> dict[str, str]:
    """Return each measure as text with the number of examples it rests on."""
    found: dict[str, str] = {}
    pairs = list(zip(questions, replies, strict=True))
    held = [normalised_match(reply.answer, one.answers) for one, reply in pairs if one.answers]
    found["answers that hold a gold answer"] = _share(held)
    for kind in dict.fromkeys(one.kind for one in questions):
        declined = [
            bool(DECLINES.search(reply.answer)) or not reply.answer.strip()
            for one, reply in pairs
            if one.kind == kind
        ]
        found[f"declined: {kind}"] = _share(declined)
    gone = [bool(DECLINES.search(reply.answer)) for one, reply in pairs if not one.answers]
    found["declined: all unanswerable"] = _share(gone)
    for kind, name in (("relevance", "IsRel"), ("support", "IsSup")):
        right = [
            case.label == label
            for case, label in zip(cases, judged, strict=True)
            if case.kind == kind
        ]
        found[f"{name} agrees with the truth"] = _share(right)
    found["well-formed outputs"] = f"{sum(r.well_formed for r in replies) / len(replies):.0%}"
    return found


def _share(values: Sequence[bool]) -> str:
    return f"{sum(values) / max(1, len(values)):.0%} of {len(values)}"


if __name__ == "__main__":
    main()
