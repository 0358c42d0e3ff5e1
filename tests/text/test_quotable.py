"""Parts that can be quoted, and what a reader needs with them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crag.text.quotable import MOST_CHARACTERS, completed, parts_of

PAGE = """# Sessions

A session lasts two weeks. It can be
renewed, e.g. by a visit.

Which back ends are there? These:

- memory, which is lost
- `redis`,
  which is kept
- a file

| Name | Default |
| ---- | ------- |
| age  | 14 days |
| path | `/`     |

Run this:

```shell
$ serve --sessions
```

Literal text::

    import sessions

The end.
"""


def texts(page: str) -> list[str]:
    return [page[part.start : part.end] for part in parts_of(page)]


def quoted(page: str, words: str) -> str:
    parts = parts_of(page)
    index = next(i for i, part in enumerate(parts) if words in page[part.start : part.end])
    return completed(page, parts, index)[2]


def test_sentences_items_rows_and_code_are_parts() -> None:
    assert texts(PAGE) == [
        "A session lasts two weeks.",
        "It can be\nrenewed, e.g. by a visit.",
        "Which back ends are there?",
        "These:",
        "- memory, which is lost",
        "- `redis`,\n  which is kept",
        "- a file",
        "| Name | Default |",
        "| age  | 14 days |",
        "| path | `/`     |",
        "Run this:",
        "$ serve --sessions",
        "Literal text::",
        "    import sessions",
        "The end.",
    ]


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ("two weeks", "A session lasts two weeks."),
        ("These:", "These:\n\n- memory, which is lost\n- `redis`,\n  which is kept\n- a file"),
        ("a file", "These:\n\n- memory, which is lost\n- `redis`,\n  which is kept\n- a file"),
        ("14 days", "| Name | Default |\n| age  | 14 days |"),
        ("Name", "| Name | Default |"),
        ("Run this", "Run this:\n\n```shell\n$ serve --sessions\n```"),
        ("$ serve", "Run this:\n\n```shell\n$ serve --sessions\n```"),
        ("import", "Literal text::\n\n    import sessions"),
    ],
)
def test_a_quotation_is_complete(words: str, answer: str) -> None:
    assert quoted(PAGE, words) == answer


def test_of_a_long_list_one_item_is_quoted_with_what_announces_it() -> None:
    items = "\n".join(f"- item {number} {'x' * 40}" for number in range(40))
    page = f"There are many:\n\n{items}\n"
    assert len(items) > MOST_CHARACTERS
    assert quoted(page, "item 7 ") == f"There are many:\n- item 7 {'x' * 40}"
    assert quoted(page, "many:") == "There are many:"


@given(st.text(alphabet="ab .:-*|#`>\n\t1é🙂", max_size=200))
def test_parts_stand_apart_in_order_and_hold_words(page: str) -> None:
    end = 0
    for index, part in enumerate(parts := parts_of(page)):
        assert end <= part.start < part.end <= len(page)
        assert page[part.start : part.end].strip()
        begin, stop, words = completed(page, parts, index)
        assert begin <= part.start < part.end <= stop
        assert words.strip()
        end = part.end
