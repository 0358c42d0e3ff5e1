"""The text of a page that is a picture: RapidOCR on ONNX Runtime, from the extra `ocr`.

Its models come in its package and are named here by their files, so that nothing is downloaded.
They read English, Chinese, Japanese and 46 other languages in Latin letters (PP-OCRv6,
arXiv:2606.13108); other scripts, such as Cyrillic, become wrong text or none.
"""

from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

LONGEST_SIDE = 1800
"""Pixels to which a page is drawn, which is what bounds time and memory: A4 at 154 dots an inch."""
_LONGEST_SEARCHED = 1024
"""Pixels of the copy in which lines are looked for, which takes the most memory."""
_MODELS = {"Det": "det", "Rec": "rec", "Cls": "cls"}


def has_ocr() -> bool:
    """Return whether the extra is installed; nothing of it is loaded."""
    return find_spec("rapidocr") is not None


def recognised(picture: Any) -> str:
    """Return the lines of a picture, with an empty one above each paragraph.

    `picture` is an array of rows, columns and blue, green and red. Lines are read over the whole
    width, so columns are mixed up.
    """
    result = _engine()(picture)
    return str(result.to_markdown()) if result.txts else ""


@cache
def _engine() -> Any:
    import cv2
    import rapidocr

    cv2.setNumThreads(1)
    folder = Path(rapidocr.__file__).parent / "models"
    files = {kind: next(folder.glob(f"*_{name}_*.onnx")) for kind, name in _MODELS.items()}
    return rapidocr.RapidOCR(
        params={
            "Global.log_level": "error",
            "EngineConfig.onnxruntime.intra_op_num_threads": 1,
            "EngineConfig.onnxruntime.inter_op_num_threads": 1,
            "Det.limit_type": "max",
            "Det.limit_side_len": _LONGEST_SEARCHED,
            "Rec.rec_batch_num": 1,  # Batches garbled some of the longest lines, and took longer.
            **{f"{kind}.model_path": str(file) for kind, file in files.items()},
        }
    )
