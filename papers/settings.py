"""The settings of the papers' experiments: those of a run, what is varied, and their tasks."""

from collections.abc import Mapping
from typing import Any

from pydantic import model_validator

from crag.papers.tasks import Task, profile_of, settings_of
from crag.settings import Settings, TaskProfile, Variant


class PaperSettings(Variant, Settings):
    """Settings of one run, with every switch that the papers ablate.

    Raises:
        SettingsError: a value is invalid; the message names the field, the value and what is
            allowed.
    """

    task: Task = "default"
    """Prompts and numbers of the papers for one of their tasks; `default` and `asqa` answer with
    citations. A task's thresholds fit CRAG's T5 evaluator only."""

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
