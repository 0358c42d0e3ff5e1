"""Begin a run that retrieves nothing."""

from crag.question import read_question
from crag.settings import Settings
from crag.state import InputState
from crag.updates import OpeningUpdate, opening


class Begin:
    """Read the question and clear what an earlier one left on the thread."""

    def run(self, state: InputState, settings: Settings) -> OpeningUpdate:
        """Open the run.

        Raises:
            QuestionError: the input holds no usable question.
        """
        return opening(read_question(state, settings.max_question_characters))
