"""The folder of a stored evaluator, from this machine or the hub."""

from pathlib import Path

from crag.errors import EvaluatorError

_FILES = ["*.json", "*.model", "*.safetensors"]
_PICKLES = "pytorch_model*.bin"


def names_hub(place: str) -> bool:
    """Return whether `place` may be a model on the hub, ``owner/name``, and is no local folder."""
    local = place.startswith(("/", "./", "../", "~")) or Path(place).is_dir()
    return place.count("/") == 1 and not local


def locate(place: str, revision: str | None) -> Path:
    """Return the folder at `place`, or the downloaded folder of the hub model of this name.

    Raises:
        EvaluatorError: it is neither.
    """
    path = Path(place).expanduser()
    if path.is_dir():
        return path
    if not names_hub(place):
        raise refusal(place, "there is no such folder. Give the folder that holds config.json")
    from huggingface_hub import snapshot_download

    try:
        path = Path(snapshot_download(place, revision=revision, allow_patterns=_FILES))
        if not any(path.glob("*.safetensors")):
            snapshot_download(place, revision=revision, allow_patterns=_PICKLES)
    except (OSError, ValueError) as error:
        problem = (
            "it is neither a folder nor can it be had from the Hugging Face hub. Check the name "
            f"and the network ({first_line(error)})"
        )
        raise refusal(place, problem) from error
    return path


def refusal(place: str | Path, problem: str) -> EvaluatorError:
    """Return the error that says what is wrong with the checkpoint at `place`."""
    return EvaluatorError(f"evaluator {place}: {problem}")


def first_line(error: Exception) -> str:
    """Return the first line of an error, or its type."""
    return str(error).strip().partition("\n")[0] or type(error).__name__
