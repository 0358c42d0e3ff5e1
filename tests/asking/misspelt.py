"""What type checkers find in a program that uses the front door; `make check` has it checked.

Each comment says what has to be found there: where nothing is, the comment itself is an error.
Nothing runs the program.
"""

# pyright: reportUnnecessaryTypeIgnoreComment=true

import crag

documents = crag.open("index", settings={"k": 5, "upper": 0.4})
answer = documents.ask("Who?")
print(answer.outcome, answer.citations[0]["number"])  # noqa: T201
print(answer.certainly)  # noqa: T201  # pyright: ignore[reportAttributeAccessIssue]
documents.ask("Who?", settings={"uper": 0.4})  # pyright: ignore[reportArgumentType]
answer.citations[0]["nummer"]  # pyright: ignore[reportGeneralTypeIssues]
