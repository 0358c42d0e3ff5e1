"""The scores of retrieved documents against the thresholds, as bars."""

from crag.correction.action import decide
from crag.correction.scoring import LOWEST
from crag.papers.bench.charts import GREEN, GREY, ORANGE, PINK, chart
from crag.papers.views.display import Picture
from crag.plain import shortened
from crag.state import Action, State, Thresholds, known_action

COLOURS: dict[Action, str] = {"correct": GREEN, "ambiguous": ORANGE, "incorrect": PINK}
_WIDTH, _ROW, _FRAME, _TITLE = 8.8, 0.36, 1.35, 38


def draw_scores(state: State) -> Picture:
    """Draw the score of each document of a run; the best one decides the action and is coloured.

    Documents are in retrieval order, first at the top.
    """
    scores = [max(one.metadata["score"], LOWEST) for one in state["documents"]]
    titles = [str(one.metadata.get("title")) for one in state["documents"]]
    names, action = [shortened(one, _TITLE) for one in titles], known_action(state["action"])
    limits = state["thresholds"] or Thresholds(upper=0.0, lower=0.0)
    best = max(scores, default=LOWEST)
    title = f"{action.capitalize()}: the best of {len(scores)} documents scores {best:+.2f}"
    with chart((_WIDTH, _FRAME + _ROW * len(scores))) as figure:
        axes = figure.add_subplot()
        axes.set(xlim=(-1.0, 1.0), ylim=(len(scores) - 0.4, -0.6), title=title)
        for row, score in enumerate(scores):
            colour = COLOURS[decide([score], **limits)] if score == best else GREY
            axes.barh(row, score + 1, left=-1, height=0.56, color=colour)
            axes.annotate(f"{score:+.2f}", (1.02, row), va="center", annotation_clip=False)
        for name, value in limits.items():
            axes.axvline(float(str(value)), color=GREY, linestyle="--", label=name)
        ticks = [limits["lower"], 0.0, limits["upper"]]
        told = [f"lower\n{ticks[0]:+.2f}", "0", f"upper\n{ticks[2]:+.2f}"]
        axes.set_xticks(ticks, told)
        axes.set_yticks(range(len(names)), names)
    listed = "; ".join(f"{name} {score:+.2f}" for name, score in zip(names, scores, strict=True))
    about = f"upper {limits['upper']:.2f}, lower {limits['lower']:.2f}"
    return Picture(figure, f"{title} ({about}). {listed}".strip())
