"""From kept strips to an answer: the context a model reads, its call, citations, the outcome."""
