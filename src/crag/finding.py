"""How an index finds documents; apart from the settings, which load LangGraph."""

from typing import Literal

FindBy = Literal["both", "meaning", "words"]
"""By words and by meaning, or by one of them."""
