"""The settings of the papers' experiments: those of a run, what is varied, and their tasks."""

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import model_validator

from crag.papers.decomposition import Decomposition, as_split, decompose
from crag.papers.tasks import Task, profile_of, settings_of
from crag.settings import Settings, Variant
from crag.tasks import TaskProfile


class PaperSettings(Variant, Settings):
    """Settings of one run, with every switch that the papers ablate.

    Raises:
        SettingsError: a value is invalid; the message names the field, the value and what is
            allowed.
    """

    task: Task = "default"
    """Prompts and numbers of the papers for one of their tasks; `default` and `asqa` answer with
    citations. A task's thresholds fit CRAG's T5 evaluator only."""

    decomposition: Decomposition = "sentences"
    """How documents are cut into strips: units of up to three sentences, or an official mode: whole
    passages (selection), excerption, windows of 50 words (fixed_num), also with the spaces around a
    passage counted as words (fixed_num_spaced)."""

    @property
    def cut(self) -> Callable[[str, int, int], list[str]] | None:
        """What cuts a passage into strips; None for `sentences`."""
        mode = self.decomposition

        def cut(text: str, place: int, count: int) -> list[str]:
            spaced = as_split(text, place, count) if mode == "fixed_num_spaced" else text
            return decompose(spaced, mode)

        return None if mode == "sentences" else cut

    @property
    def variant(self) -> Variant:
        """What the papers vary: fields of these settings."""
        return self

    @property
    def profile(self) -> TaskProfile:
        """Everything that the task changes, besides numbers."""
        return profile_of(self.task)

    @model_validator(mode="before")
    @classmethod
    def _fill_from_task(cls, given: Any) -> Any:
        if not isinstance(given, Mapping):
            return given
        return {**settings_of(str(given.get("task"))), **given}
