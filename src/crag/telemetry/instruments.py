"""The metrics: their names, units and what they count; docs/guide/telemetry.md lists them."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opentelemetry.metrics import Meter

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 160, 320, 640)
_MODEL_SECONDS = (
    0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92,
)  # fmt: skip
"""As the semantic conventions for generative AI ask for, like the next ones."""
_TOKENS = tuple(4**power for power in range(14))


class Instruments:
    """The instruments of one process; made on a meter of any provider."""

    def __init__(self, meter: "Meter") -> None:
        def seconds(name: str, what: str, bounds: tuple[float, ...] = _SECONDS) -> Any:
            return meter.create_histogram(
                name, "s", what, explicit_bucket_boundaries_advisory=list(bounds)
            )

        self.questions = meter.create_counter(
            "crag.questions", "{question}", "Questions by graph, action and outcome"
        )
        self.question_duration = seconds("crag.question.duration", "Time of a question")
        self.node_duration = seconds("crag.node.duration", "Time of a node")
        self.events = meter.create_counter(
            "crag.events", "{event}", "Events of runs by kind and node"
        )
        self.usage = meter.create_counter(
            "crag.usage", "{unit}",
            "What questions used: calls, texts, pages, bytes, milliseconds, tokens",
        )  # fmt: skip
        self.model_duration = seconds(
            "gen_ai.client.operation.duration", "Time of a call of a model", _MODEL_SECONDS
        )
        self.model_tokens = meter.create_histogram(
            "gen_ai.client.token.usage", "{token}", "Tokens of a call of a model",
            explicit_bucket_boundaries_advisory=list(_TOKENS),
        )  # fmt: skip
        self.queue_length = meter.create_gauge(
            "crag.queue.length", "{run}", "Runs that wait for a process, in the whole database"
        )
        self.queue_duration = seconds("crag.queue.duration", "Time that a run waited")
        self.running = meter.create_gauge(
            "crag.runs.running", "{run}", "Runs that this process works on"
        )
