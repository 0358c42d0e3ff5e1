"""The papers: their experiments, the training of every model, and the measurements.

Nothing of the product imports it; it may import all of the product.
"""

from pathlib import Path

from crag.prompts import FOLDERS

FOLDERS.append(Path(__file__).parent / "prompts")
