"""Answering: a chat model by name, or quotation without one."""

from crag.generation.chat import load_chat_model
from crag.generation.extractive import ExtractiveAnswerer

__all__ = ["ExtractiveAnswerer", "load_chat_model"]
