"""The released programs of Self-RAG written anew, from their description, to compare with.

The description is that of docs/method/self-rag.md: what each program computes from a model's tokens
and their probabilities, with its faults. Nothing here is shared with the code under test.
"""

import math
import random
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from crag.parts import Candidate, Passage

CONTROL = [
    "[Fully supported]", "[Partially supported]", "[No support / Contradictory]",
    "[No Retrieval]", "[Retrieval]", "[Irrelevant]", "[Relevant]", "<paragraph>", "</paragraph>",
    "[Utility:1]", "[Utility:2]", "[Utility:3]", "[Utility:4]", "[Utility:5]",
]  # fmt: skip
"""The 14 tokens that are deleted from answers; `[Continue to Use Evidence]` is not among them."""
YES, NO, MORE = "[Retrieval]", "[No Retrieval]", "[Continue to Use Evidence]"
SUPPORT = ("[Fully supported]", "[Partially supported]", "[No support / Contradictory]")
Generate = Callable[[str, Passage | None], Candidate]
"""What the model writes after a context, for a passage or without one."""


def post_processed(text: str) -> str:
    """Delete the control tokens, ends and line breaks."""
    for token in [*CONTROL, "</s>", "\n", "<|endoftext|>"]:
        text = text.replace(token, "")
    return text


def share(seen: dict[str, float], token: str, others: Sequence[str]) -> float:
    mass = seen.get(token, 0.0) + sum(seen.get(other, 0.0) for other in others)
    return seen.get(token, 0.0) / mass if mass else 0.5


def short_score(
    candidate: Candidate, use_weight: float, sequence: Callable[[Candidate], float]
) -> float:
    """Sequence score + IsRel + IsSup + weighted IsUse, in the graded forms of the appendix."""
    rel = share(dict(candidate.relevance or {}), "[Relevant]", ["[Irrelevant]"])
    return sequence(candidate) + rel + support(candidate) + use_weight * utility(candidate)


def support(candidate: Candidate) -> float:
    if candidate.support is None:
        return 0.0
    full, part, none = (candidate.support.get(token, 0.0) for token in SUPPORT)
    mass = full + part + none
    return (full + 0.5 * part) / mass if mass else 0.5


def utility(candidate: Candidate) -> float:
    if candidate.utility is None:
        return 0.0
    seen = [candidate.utility.get(f"[Utility:{grade}]", 0.0) for grade in range(1, 6)]
    weighted = zip((-1, -0.5, 0, 0.5, 1), seen, strict=True)
    return sum(weight * p for weight, p in weighted) / sum(seen) if sum(seen) else 0.0


def with_end(candidate: Candidate) -> float:
    """Return exp of the mean log-probability, the token that ended the text included."""
    end = candidate.end_log_probability
    total = candidate.mean_log_probability * candidate.tokens + (end or 0.0)
    return math.exp(total / max(1, candidate.tokens + (end is not None)))


def short_answer(candidates: Sequence[Candidate], *, closed: bool) -> str:
    """Choose among one candidate for each passage, as the released short form."""
    scores = [short_score(one, 1.0, with_end) for one in candidates]
    if closed:
        sums: dict[str, float] = {}
        for one, score in zip(candidates, scores, strict=True):
            text = post_processed(one.text)
            sums[text] = sums.get(text, 0.0) + score
        best = max(sums, key=lambda text: sums[text])
    else:
        best = candidates[max(range(len(scores)), key=lambda place: scores[place])].text
    return without_lead(best)


def short_answer_alone(candidate: Candidate) -> str:
    return without_lead(post_processed(candidate.text))


def without_lead(text: str) -> str:
    return text[1:] if text[:1] in {"#", ":"} and text else text


class Node(NamedTuple):
    """A node of the released tree."""

    prompt: str
    raw: str
    text: str
    score: float | None
    passage: Passage | None
    parent: int | None


def tree(
    generate: Generate, passages: Sequence[Passage], *, delta: float, width: int, max_depth: int
) -> list[list[Node]]:
    """Search as the released long form; return the nodes of each path, best first, with the root.

    A child but the first has its sibling's text in its prompt, IsUse is 0, weights are 1, 1 and
    0.5 without the sequence score, scores are multiplied, and only the deepest level answers.
    """
    nodes = [Node("", YES, "", None, None, None)]
    level, answering, depth = [0], list[int](), 1
    while depth < max_depth and level:
        following: list[int] = []
        for place in level:
            parent = nodes[place]
            if YES not in parent.raw:
                continue
            context, before = parent.prompt + parent.text, parent.text
            for passage in passages:
                candidate = generate(context, passage)
                raw = remap(candidate, delta)
                text = raw.split(YES)[0]
                score = segment_score(candidate) * (1 if parent.score is None else parent.score)
                following.append(len(nodes))
                nodes.append(Node(parent.prompt + before, raw, text, score, passage, place))
                before = text
        level = sorted(following, key=lambda place: -(nodes[place].score or 0.0))[:width]
        answering = level or answering
        depth += 1
    return [path(nodes, place) for place in answering]


def path(nodes: Sequence[Node], place: int | None) -> list[Node]:
    found: list[Node] = []
    while place is not None:
        found.insert(0, nodes[place])
        place = nodes[place].parent
    return found


def segment_score(candidate: Candidate) -> float:
    seen = dict(candidate.relevance or {})
    yes, no = (seen.get(token, -100.0) for token in ("[Relevant]", "[Irrelevant]"))
    return yes / (yes + no) + released_support(candidate)


def released_support(candidate: Candidate) -> float:
    return support(candidate) if candidate.support is None or sum(candidate.support.values()) else 0


def remap(candidate: Candidate, delta: float) -> str:
    """Rewrite each `[No Retrieval]` by its ratio; the text then ends with one too many."""
    if NO not in candidate.text:
        return candidate.text
    emitted = re.findall(r"\[(?:No Retrieval|Retrieval|Continue to Use Evidence)\]", candidate.text)
    told = [
        shares for token, shares in zip(emitted, candidate.retrieve, strict=True) if token == NO
    ]
    pieces = candidate.text.split(NO)
    made = ""
    for place, piece in enumerate(pieces):
        again = False
        if place < len(told):
            one = told[place]
            mass = one.get(YES, 0.0) + one.get(NO, 0.0)
            again = (one.get(YES, 0.0) + one.get(MORE, 0.0)) / mass > delta
        made += piece + (YES if again else NO)
    return made


def spaced(text: str) -> str:
    return re.sub(r"(?<=\w)([.!?])(?=\w)", r"\1 ", text)


def biography(paths: Sequence[Sequence[Node]], *, ignore_no_support: bool) -> str:
    """Write the best path as FActScore's input."""
    kept = [node.text for node in paths[0] if not (ignore_no_support and SUPPORT[2] in node.text)]
    return spaced(post_processed(" ".join(kept)).removeprefix(" "))


def asqa(paths: Sequence[Sequence[Node]], *, ignore_no_support: bool) -> tuple[str, list[Passage]]:
    """Write the best path with the number of each segment as its citation."""
    nodes = paths[0]
    if len(paths) > 1 and not post_processed(" ".join(node.text for node in nodes)).strip():
        nodes = paths[1]
    answer, cited, said = "", list[Passage](), set[str]()
    for number, node in enumerate(nodes):
        text = post_processed(node.text)
        if not text or text in said or (ignore_no_support and SUPPORT[2] in node.text):
            continue
        said.add(text)
        answer += f"{text[:-1]} [{number}]. "
        assert node.passage is not None
        cited.append(node.passage)
    answer = spaced(answer).replace(f".{MORE}", " [1]. ").replace(". [1] ", " [1]. ")
    return answer.strip(), cited


INVENTED = "<paragraph>made up</paragraph>"
PIECES = ("", "", "Ada wrote.", "Babbage built!", "Note G?", "\n", "It.Was", "x", INVENTED, "</s>")
RETRIEVES = (YES, NO, NO, MORE)


def drawn(seed: object, *, retrieves: bool = True) -> Candidate:
    """Draw a continuation of a model with the tokens: text and probabilities of all kinds."""
    draw = random.Random(repr(seed))  # noqa: S311 - made-up data
    text, decided = draw.choice(["", "[Relevant]", "[Irrelevant]"]), list[dict[str, float]]()
    for _ in range(draw.randrange(5)):
        text += draw.choice(PIECES) + draw.choice(["", "", *SUPPORT, "[Utility:5]"])
        if retrieves and draw.random() < 0.4:
            text += draw.choice(RETRIEVES)
            mass = [draw.random() ** 3 for _ in range(3)]
            decided.append(dict(zip((YES, NO, MORE), mass, strict=True)))
    tokens = draw.randrange(1, 30)
    return Candidate(
        text=text,
        relevance=_shares(draw, ["[Relevant]", "[Irrelevant]"]),
        support=_shares(draw, SUPPORT) if draw.random() < 0.7 else None,
        utility=_shares(draw, CONTROL[-5:]) if draw.random() < 0.7 else None,
        mean_log_probability=-2 * draw.random(),
        tokens=tokens,
        ending=draw.choice(["end", "end", "length"]),
        end_log_probability=-draw.random() if draw.random() < 0.8 else None,
        retrieve=tuple(decided),
    )


def _shares(draw: random.Random, group: Sequence[str]) -> dict[str, float]:
    return {token: draw.random() for token in group if draw.random() < 0.9}
