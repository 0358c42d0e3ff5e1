"""Chunks follow the structure of their document, and know the very lines that they hold."""

import random
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document

from crag.documents.blocks import Markup, blocks_of
from crag.documents.loaders import find_files, load
from crag.documents.sources import SourceText
from crag.documents.splitting import split
from crag.text.places import line_numbers, lines_between, lines_written
from crag.text.sentences import sentences_of, split_sentences
from tests.conftest import CORPORA

DOCS = Path(__file__).parents[2] / "docs"
PROSE = "The mill grinds the flour of the village in every season of the year. "


def chunks_of(text: str, markup: Markup = "markdown") -> list[Document]:
    return split(SourceText(source="/a", title="T", text=text, unit="line", markup=markup), "/")


def read(folder: Path, name: str, text: str) -> SourceText:
    (folder / name).write_text(text)
    (loaded,) = load(folder / name)
    assert isinstance(loaded, SourceText)
    return loaded


def test_a_long_list_keeps_its_lead_in() -> None:
    items = "\n".join(f"- item {number}: {PROSE}" for number in range(30))
    first, second, *_ = chunks_of(f"# T\n\nThe steps are these:\n\n{items}\n")
    assert first.page_content.startswith("# T\n\nThe steps are these:\n\n- item 0:")
    assert second.page_content.startswith("The steps are these:\n\n- item ")
    assert second.metadata["kind"] == "list"
    number = int(second.page_content.split("item ")[1].split(":")[0])
    assert line_numbers(second.metadata["lines"])[0] == 3
    assert line_numbers(second.metadata["lines"])[2] == number + 5


def test_a_long_item_is_cut_between_those_within_it() -> None:
    methods = (f"  - method{n}()\n\n    {PROSE}\n\n    - Returns: {n}\n\n" for n in range(30))
    _, *others = chunks_of(f"- module\n\n  It has methods.\n\n{''.join(methods)}")
    assert others
    assert all(chunk.page_content.startswith("  - method") for chunk in others)


@pytest.mark.parametrize("term", ["- socket (string)", "2. Its socket", "- server\n\n  - socket"])
def test_each_part_of_a_long_item_repeats_its_term(term: str) -> None:
    line = term.rpartition("\n")[2]
    margin = " " * (len(line) - len(line.lstrip()) + 3)
    pages = "".join(f"{margin}Page {number}. {PROSE * 4}\n\n" for number in range(9))
    port = f"- port (integer)\n\n  {PROSE * 6}\n\n"
    *before, last = chunks_of(f"{port}{term}\n\n{pages}- last\n\n  {PROSE}")
    parts = [chunk.page_content for chunk in (*before, last) if "Page" in chunk.page_content]
    assert len(parts) > 2
    assert all(line in part for part in parts)
    assert not any(chunk.page_content.endswith(line) for chunk in before)
    assert not any("server" in part for part in parts[1:])


def test_code_within_a_long_item_stays_whole_where_it_fits_a_chunk() -> None:
    code = "  ```\n  a = 1\n\n  b = 2\n\n  c = 3\n  ```\n\n"
    for length in range(8, 16):
        chunks = chunks_of(f"- run()\n\n  {PROSE * length}\n\n{code}  {PROSE * 6}\n\n")
        assert len(chunks) > 1
        assert sum(code.strip() in chunk.page_content for chunk in chunks) == 1
    long = "  ```\n" + "".join(f"  a{n} = '{PROSE}'\n\n" for n in range(40)) + "  ```\n\n"
    _, *parts, _ = chunks_of(f"- run()\n\n{long}  {PROSE * 6}\n\n- last\n\n  {PROSE}")
    assert parts
    assert not any("run()" in part.page_content for part in parts if "```" not in part.page_content)


def test_a_sentence_that_opens_a_long_item_is_not_repeated() -> None:
    pages = "".join(f"  Page {number}. {PROSE * 4}\n\n" for number in range(9))
    chunks = chunks_of(f"- Open the gate.\n\n{pages}")
    assert sum("Open the gate." in chunk.page_content for chunk in chunks) == 1


def test_what_leads_in_the_items_within_one_ends_no_chunk() -> None:
    inner = "\n".join(f"  - argument {number}: {PROSE}" for number in range(30))
    for length in range(40, 100, 3):
        before = " ".join(f"word{number}." for number in range(length))
        for chunk in chunks_of(f"- {before}\n- Use the macro, which takes:\n\n{inner}\n"):
            assert not chunk.page_content.endswith("takes:")


def test_a_list_that_leads_code_in_ends_no_chunk() -> None:
    for length in range(40, 100, 3):
        before = " ".join(f"word{number}." for number in range(length))
        code = "x = 1\n" * 60
        for chunk in chunks_of(f"{before}\n\n- Example:\n```py\n{code}```\n"):
            assert not chunk.page_content.endswith("Example:")


def test_a_long_table_keeps_its_header() -> None:
    rows = "\n".join(f"| {number} | {PROSE}|" for number in range(30))
    chunks = chunks_of(f"| no | what |\n| --- | --- |\n{rows}\n")
    assert len(chunks) > 1
    for chunk in chunks:
        assert chunk.page_content.startswith("| no | what |\n| --- | --- |\n| ")
        assert chunk.metadata["kind"] == "table"
    assert chunks[1].metadata["lines"].startswith("1-2 ")


def test_the_head_of_a_table_ends_no_chunk() -> None:
    rows = "\n".join(f"| {number} | {PROSE}|" for number in range(30))
    for length in range(400, 700, 20):
        before = " ".join(f"word{number}." for number in range(length // 9))
        for chunk in chunks_of(f"{before}\n\n| no | what |\n| --- | --- |\n{rows}\n"):
            assert not chunk.page_content.endswith("| --- | --- |")


def test_long_code_keeps_its_caption_and_fences() -> None:
    code = "\n\n".join(f"def f{number}():\n    return {number!r} * 2000" for number in range(60))
    chunks = chunks_of(f"Run this:\n\n```python\n{code}\n```\n\nDone.\n")
    assert len(chunks) > 1
    for chunk in chunks[:-1]:
        assert chunk.page_content.startswith("Run this:\n\n```python\ndef f")
        assert chunk.page_content.endswith("\n```")
        assert chunk.metadata["kind"] == "code"


def test_code_within_a_quotation_keeps_its_fences() -> None:
    lines = "\n".join(f"> step{number}({PROSE!r})" for number in range(30))
    _, second, *_ = chunks_of(f"# T\n\n> Mind this:\n>\n> ```js\n{lines}\n> ```\n\nEnd.\n")
    assert second.page_content.startswith("> ```js\n> step")
    assert second.page_content.endswith("\n> ```")
    quoted = chunks_of(f"> {PROSE}\n> {PROSE}\n\nEnd.\n")
    assert quoted[0].page_content == f"> {PROSE}\n> {PROSE}\n\nEnd."


def test_a_literal_block_keeps_its_directive() -> None:
    code = "\n".join(f"   print({number}, 'a line of the program')" for number in range(90))
    chunks = chunks_of(f"Title\n=====\n\nRun:\n\n.. code-block:: python\n\n{code}\n", "rst")
    assert len(chunks) > 1
    for chunk in chunks[1:]:
        assert chunk.page_content.startswith("Run:\n\n.. code-block:: python\n\n   print(")


@pytest.mark.parametrize(("term", "gap"), [("``wait``", "\n\n"), ("Waiting", "\n")])
def test_what_a_term_means_stays_with_it_and_repeats_it(term: str, gap: str) -> None:
    prose = "\n\n".join([f"  {PROSE}"] * 20)
    first, *others = chunks_of(f"{PROSE * 9}\n\n{term}{gap}{prose}\n\nAfter it.\n", "rst")
    assert not first.page_content.endswith(term)
    assert len(others) > 1
    assert all(chunk.page_content.startswith(f"{term}{gap}  The mill") for chunk in others)
    assert {chunk.metadata["kind"] for chunk in others} == {"list"}


def test_a_sentence_that_speaks_of_a_list_stays_with_it() -> None:
    items = "\n".join(f"- item {number}: {PROSE}" for number in range(30))
    _, *others = chunks_of(f"# T\n\nIt looks in the following places, in order.\n\n{items}\n")
    assert all(one.page_content.startswith("It looks in the following") for one in others)


def test_in_plain_text_no_chunk_ends_with_a_title_or_a_term() -> None:
    def ends(paragraph: str) -> str:
        below = "\n\n".join(f"  {PROSE}" for _ in range(9))
        first, *_ = chunks_of(f"{PROSE * 9}\n\n{paragraph}\n\n{below}\n", "")
        return first.page_content.rpartition("\n\n")[2]

    assert ends("The way from the mill to town").startswith(PROSE)
    assert ends("The way to town\n---------------").startswith(PROSE)
    assert ends("Words\n  have meanings") == "Words\n  have meanings"


def test_rows_below_a_wide_header_are_whole() -> None:
    rule = f"{'=' * 40} {'=' * 70}\n"
    rows = "".join(f"part {n:<35} {PROSE}\n" for n in range(9))
    chunks = chunks_of(
        f"The parts are these:\n\n{rule}Name {'':<35} What\n{rule}{rows}{rule}", "rst"
    )
    assert all("\nName " in chunk.page_content for chunk in chunks)
    assert sum(chunk.page_content.count(f" {PROSE.strip()}") for chunk in chunks) == 9


def test_no_chunk_ends_with_a_question_that_the_next_paragraph_answers() -> None:
    for length in range(40, 160, 3):
        before = " ".join(f"word{number}." for number in range(length))
        for chunk in chunks_of(f"{before}\n\nWho repairs the mill?\n\n{PROSE * 6}\n"):
            assert not chunk.page_content.endswith("mill?")


def test_a_table_of_plain_text_is_a_table() -> None:
    chunks = chunks_of("| part | kg |\n| mill | 7 |\n", "")
    assert [chunk.metadata["kind"] for chunk in chunks] == ["table"]
    assert [chunk.metadata["kind"] for chunk in chunks_of("| part | kg |\n", "")] == ["prose"]


def test_a_paragraph_of_wide_spaces_is_no_block() -> None:
    (chunk,) = chunks_of("# T\n\n\u2003\n\nThe mill grinds.\n")
    assert chunk.metadata["kind"] == "prose"
    assert [block.kind for block in blocks_of("\u2003\n\nText.", "markdown")] == ["prose"]


def test_a_paragraph_too_long_to_find_its_sentences_is_cut_at_lines() -> None:
    line = "A line of a log without an end of any sentence " * 2
    text = "\n".join(f"{number:03} {line}".strip() for number in range(300)) + "\n"
    assert len(text) > 20_000
    chunks = chunks_of(text, "")
    assert len(chunks) > 20
    for chunk in chunks:
        assert chunk.page_content[:3].isdecimal()
        assert chunk.page_content.endswith("any sentence")


def test_a_text_that_breaks_its_parser_is_taken_as_plain(caplog: Any) -> None:
    text = "- " * 4_000 + "The mill."
    assert "".join(chunk.page_content for chunk in chunks_of(text, "rst")).endswith("The mill.")
    assert "cannot parse a text as rst" in caplog.text


def test_no_chunk_begins_within_a_sentence() -> None:
    wrapped = "\n".join(
        ["A sentence that is wrapped by", "hand over two lines (httpx.Error). "] * 60
    )
    for chunk in chunks_of(wrapped):
        assert chunk.page_content.startswith("A sentence")
        assert chunk.page_content.rstrip().endswith("(httpx.Error).")


def test_only_a_section_that_is_cut_overlaps() -> None:
    text = f"# T\n\n## One\n\n{PROSE * 9}\n\n## Two\n\n{PROSE * 25}\n"
    one, *two = chunks_of(text)
    assert one.page_content.endswith(PROSE.strip())
    assert two[0].page_content.startswith("## Two")
    assert all(chunk.metadata["section"] == "Two" for chunk in two)
    assert two[1].metadata["start"] > text.index(two[1].page_content[:200])


def test_small_sections_share_a_chunk_under_their_heading() -> None:
    text = "# T\n\n## Tools\n\nAll of them.\n\n### Saw\n\nIt cuts.\n\n### File\n\nIt smooths.\n"
    (chunk,) = chunks_of(text)
    assert (chunk.page_content, chunk.metadata["section"]) == (text.strip(), "Tools")


def test_markdown_without_what_is_no_text(folder: Path) -> None:
    loaded = read(
        folder,
        "a.md",
        '---\ntitle: "On <em>mills</em>"\ntags: [a]\n---\n\n<!-- Secret -->\n\n'
        '<font color="red">Beware</font> of `<font>`, {class}`~a.B` and <string>.\n\n'
        "{* ../src/a.py hl[1] *}\n"
        '--8<-- "a.md"\n\n```{toctree}\na\nb\n```\n\n![A picture](a.png)\n\n'
        "[![CI](a.svg)](b) [![PyPI][c]][d]\n\n"
        "```html\n<font>x\n```\n\n[c]: d.svg 'A badge'\n",
    )
    assert loaded.title == "On mills"
    (chunk,) = split(loaded, "/")
    assert chunk.page_content == "Beware of `<font>`, `a.B` and <string>.\n\n```html\n<font>x\n```"
    assert chunk.metadata["lines"] == "8 21-24"


def test_code_in_markdown_shows_what_would_be_markup_elsewhere(folder: Path) -> None:
    code = (
        "Names are `{prefix}:{name}` and `{a}`.\n\n"
        '```jinja\n{% extends "a.html" %}\n{% block body %}\n{% endblock %}\n```\n\n'
        '```python\ntext = f"""In all {:d}\n"""\n```\n\n'
        "!!! example\n\n    ```md\n    ::: mill.Wheel\n    ![A](a.png)\n    ```\n"
    )
    assert read(folder, "a.md", code).text == code
    markup = '{% include "a.html" %}\nSee {ref}`a`, {class}`!b`.\n{: .big}\n'
    assert read(folder, "a.md", markup).text == "\nSee a, `b`.\n\n"


def test_roles_of_myst_show_their_labels_and_comments_nothing(folder: Path) -> None:
    markup = "See {doc}`the water\nwheel <wheel>`, {ref}`one\n<x>`, {pep}`8`.\n\n% to do\n% more\n"
    text = read(folder, "a.md", markup).text
    assert text.count("\n") == markup.count("\n")
    assert read(folder, "b.md", "- See {ref}`one of two\n  <x>`\n").text == "- See one of\n  two\n"
    assert text.split() == ["See", "the", "water", "wheel,", "one,", "PEP", "8."]


def test_references_to_titles_elsewhere_are_words_unless_they_may_be_names(folder: Path) -> None:
    page = "See {ref}`exit-codes`, {doc}`../use/quick_start`, {ref}`mill.run` or `{ref}`.\n"
    assert read(folder, "a.md", page).text == "See exit codes, quick start, mill.run or `{ref}`.\n"
    page = "See :ref:`exit-codes`, :ref:`lib:a-b`, :std:doc:`x_y`, :ref:`Run()`, :func:`a_b`.\n"
    assert read(folder, "a.rst", page).text == "See exit codes, a b, x y, Run(), a_b.\n"


def test_notes_of_myst_are_text_and_its_code_is_code(folder: Path) -> None:
    role = "{meth}`run` is gone."
    shown, note = f"```{{code-block}} md\n{role}\n```", f"```{{note}}\n{role}\n```"
    text = read(folder, "a.md", f"{note}\n\n{shown}\n\n{note}").text
    assert text.split("\n\n") == [
        "```{note}\n`run` is gone.\n```", shown, "```{note}\n`run` is gone.\n```",
    ]  # fmt: skip


def test_blocks_of_pymdownx_are_notes_and_titles(folder: Path) -> None:
    page = (
        "/// tip | Mind\n    open: True\n\nIt turns.\n///\n\n"
        "//// details | Why?\n/// html | div.x\nBecause.\n///\n////\n\n/// note\n\nSo.\n\n///\n"
    )
    text = read(folder, "a.md", page).text
    assert text.count("\n") == page.count("\n")
    assert [line for line in text.split("\n") if line] == [
        '!!! tip "Mind"', "    It turns.", "**Why?**", "Because.", "!!! note", "    So.",
    ]  # fmt: skip


def test_tables_without_bars_around_them_are_tables(folder: Path) -> None:
    page = (
        "Option | Type\n-------|:---\n`a` | A \\| b\n`b` | B |\n\n"
        "- c\n\n  d | e\n  - | -\n  f | g\n\nNo | x\n"
    )
    text = read(folder, "a.md", page).text
    assert text == (
        "| Option | Type |\n| -------|:--- |\n| `a` | A \\| b |\n| `b` | B |\n\n"
        "- c\n\n  | d | e |\n  | - | - |\n  | f | g |\n\nNo | x\n"
    )


def test_pages_of_mdx_without_what_draws_them(folder: Path) -> None:
    page = (
        "import Tabs from '@theme/Tabs';\nexport const Mark = () => (\n  <b>x</b>\n);\n\n"
        "# Install\n\n"
        '<Badge type="tip" /> Needs `List<T>` or List<T>.\n\n<Tabs>\n'
        '  <TabItem value="y" label="Yarn">\n\n'
        "    ```sh\n    yarn add x\n    ```\n\n  </TabItem>\n</Tabs>\n\n{/* secret */}\n"
        "::: tip Quick\nRun it.\n:::\n\n::: details Why?\nBecause.\n:::\n\n"
        "```jsx\nimport A from 'a';\n<Tabs>\n  <A />\n</Tabs>\n```\n"
    )
    text = read(folder, "a.mdx", page).text
    assert text.count("\n") == page.count("\n")
    assert [line for line in text.split("\n") if line] == [
        "# Install", " Needs `List<T>` or List<T>.", "**Yarn**", "```sh", "yarn add x", "```",
        '!!! tip "Quick"', "    Run it.", "**Why?**", "Because.",
        "```jsx", "import A from 'a';", "<Tabs>", "  <A />", "</Tabs>", "```",
    ]  # fmt: skip


def test_html_within_markdown_is_no_code_and_its_tables_are_tables(folder: Path) -> None:
    text = read(
        folder,
        "a.md",
        "<div>\n    <b>Fast</b>\n</div>\n\n<table>\n  <tr><th>Option</th><th>Default</th></tr>\n"
        "  <tr>\n    <td><code>port</code></td>\n    <td>7420</td>\n  </tr>\n</table>\n\n"
        "<ul>\n  <li>One</li>\n</ul>\n\n"
        "<details>\n  <summary>How?</summary>\n  So.\n</details>\n\n"
        "<style>\n.a { b: 0 }\n</style>\n",
    ).text
    assert [line for line in text.split("\n") if line] == [
        "Fast", "| Option | Default |", "| --- | --- |", "| port | 7420 |", "- One",
        "**How?**", "So.",
    ]  # fmt: skip


def test_links_of_html_that_stand_alone_keep_their_addresses(folder: Path) -> None:
    link = '<a class="x" href="https://a.example/{0}" target="_blank">{0}</a>'
    page = f"{link.format('Code')} |\n{link.format('Docs')}\n\nSee {link.format('this')}.\n"
    shown = "[Code](https://a.example/Code) |\n[Docs](https://a.example/Docs)\n\nSee this.\n"
    assert read(folder, "a.md", page).text == shown


def test_html_tables_of_names_and_values_are_lists(folder: Path) -> None:
    row = "  <tr>\n    <td><strong>{}</strong></td>\n    <td>{}</td>\n  </tr>\n"
    rows = row.format("Place", "1 Mill Lane<br>Town") + row.format("Seats:", "Nine")
    text = read(folder, "a.md", f"<table>\n{rows}</table>\n\nSo.\n").text
    assert [line for line in text.split("\n") if line] == [
        "- **Place:** 1 Mill Lane Town", "- **Seats:** Nine", "So.",
    ]  # fmt: skip
    layout = read(folder, "b.md", "<table>\n<tr><td>One</td>\n<td>Two</td></tr>\n</table>\n").text
    assert layout.split() == ["One", "Two"]


def test_what_tools_of_markdown_read_is_no_text(folder: Path) -> None:
    page = (
        "::: mill.Mill\n    options:\n        heading: 3\n\n        filters: []\n\n"
        '[rules]: {% page "/rules/#a" %}\nSee [rules].\n\n'
        "- Grind{% comment %}TODO\nlink{% endcomment %}\n\n"
        "{{< tags >}}A {{% note %}}hint{{% /note %}}, `{{< x >}}`.\n"
    )
    text = read(folder, "a.md", page).text
    assert text.count("\n") == page.count("\n")
    assert [line for line in text.split("\n") if line] == [
        "See rules.", "- Grind", "A hint, `{{< x >}}`.",
    ]  # fmt: skip


def test_a_table_of_contents_is_no_text(folder: Path) -> None:
    contents = "- [A](#a)\n  - [B `b[0]`](#b)\n- [C?](#c)\n"
    text = read(folder, "a.md", f"# T\n\n[[toc]]\n\n{contents}\n- [D](#d) or [E](e.md)\n").text
    assert text.split() == ["#", "T", "-", "[D](#d)", "or", "[E](e.md)"]


def test_rows_that_no_bar_ends_are_rows(folder: Path) -> None:
    text = read(folder, "a.md", "| a | b |\n|--|--|\n| x | `y`\n| z | w |\n\n| no table\n").text
    assert text.split("\n")[2:6] == ["| x | `y` |", "| z | w |", "", "| no table"]


def test_tags_that_keep_words_apart_leave_a_space(folder: Path) -> None:
    text = read(
        folder, "a.md", "| <b>One</b><br>two | a<sub>n</sub> |\n|---|---|\n| x | y |\n"
    ).text
    assert text.startswith("| One two | an |\n")


def test_the_padding_of_wide_tables_takes_no_room(folder: Path) -> None:
    row = "| {:300} | {:9} |\n"
    rows = "".join(row.format(f"part {number}", "is good") for number in range(80))
    text = f"{row.format('name', 'word')}|{'-' * 302}|{'-' * 11}|\n{rows}"
    chunks = split(read(folder, "a.md", text), "/")
    assert len(chunks) < 4
    for chunk in chunks:
        assert chunk.page_content.startswith("| name | word |\n|---|---|\n| part ")
    assert chunks[1].metadata["lines"].startswith("1-2 ")


def test_links_of_several_lines_cut_no_paragraph(folder: Path) -> None:
    text = (
        "It happens when `your client\n<https://example.org/a/b>`__\nhas one address.\n\n"
        "#. Ask `the steering council\n   <mailto:a@b>`_ about it,\n   says :pep:`13#x`.\n"
        "#. Wait for Mill_ and self.name_.\n\n.. _mill: https://example.org/\n"
    )
    loaded = read(folder, "a.rst", text)
    assert [block.kind for block in blocks_of(loaded.text, "rst")] == ["prose", "list"]
    assert loaded.text.count("\n") == text.count("\n")
    assert " ".join(loaded.text.split()) == (
        "It happens when your client has one address. #. Ask the steering council about it, says "
        "PEP 13. #. Wait for Mill and self.name_."
    )


WIDE_GRID = f"+------+{'-' * 150}+\n| name | what{' ' * 146}|\n+======+{'=' * 150}+\n"
GRID = "+------+-----------+\n| name | what      |\n+======+===========+\n"
LIST = ".. list-table::\n   :header-rows: 1\n\n   * - name\n     - what\n"


@pytest.mark.parametrize(
    ("head", "row"),
    [
        (GRID, "| {:4} | the flour |\n|      | of {:6} |\n+------+-----------+\n"),
        (
            WIDE_GRID,
            f"| {{:4}} | the flour{' ' * 140}|\n|      | of {{:6}}{' ' * 140}|\n+------+"
            + "-" * 150
            + "+\n",
        ),
        (LIST, "   * - {}\n     - the flour\n       of {}\n"),
    ],
    ids=["grid", "wide grid", "list"],
)
def test_tables_of_restructured_text_are_cut_between_rows_and_keep_their_head(
    head: str, row: str
) -> None:
    chunks = chunks_of(head + "".join(row.format(n, n) for n in range(60)), "rst")
    assert len(chunks) > 1
    for chunk in chunks:
        assert chunk.page_content.startswith(head.rstrip())
        assert chunk.page_content.count("flour") == chunk.page_content.count("of ")


def test_a_quoted_list_without_ends_of_sentences_is_cut_between_its_lines() -> None:
    lines = [f"> - [mill {n}](https://example.org/{'a' * 60})" for n in range(40)]
    chunks = chunks_of("\n".join(lines))
    assert len(chunks) > 1
    assert {line for one in chunks for line in one.page_content.split("\n")} == set(lines)


def test_a_comment_that_code_shows_hides_nothing_below_it(folder: Path) -> None:
    page = (
        "```{include} a.md\n:end-before: <!-- end\n```\n\nSeen.\n\n"
        "<!-- [[[cog\na -->b\n]]] -->\nx\n"
    )
    assert read(folder, "a.md", page).text.split() == ["Seen.", "x"]


def test_a_doctest_of_myst_is_cut_as_code_is() -> None:
    code = "\n".join(f">>> step({number}, {PROSE!r})" for number in range(30))
    chunks = chunks_of(f"```{{doctest}}\n{code}\n```\n")
    assert len(chunks) > 1
    assert all(one.page_content.startswith("```{doctest}\n>>> step") for one in chunks)
    assert all(one.page_content.endswith("\n```") for one in chunks)


def test_restructured_text_without_what_is_no_text(folder: Path) -> None:
    loaded = read(
        folder,
        "a.rst",
        ":orphan:\n:author: A. B.\n   C.\n\n.. _mills:\n..  _inns:\n\n|ci| |pypi|_\n\n"
        "=====\nMills\n=====\n\nMade |ci| so.\n\n.. |ci|  image:: a.svg\n\n"
        "..  only:: html\n\n    ..  code-block:: sh\n\n        ls\n\n"
        ".. toctree::\n   :maxdepth: 2\n\n   a\n   b\n\n.. testsetup::\n\n   import mill\n\n"
        ".. include:: /links.rst\n\n.. A comment\n   of two lines.\n\n"
        ".. [[[cog\n   show()\n.. ]]]\n\n.. rst-class:: wide\n\n"
        ".. |v| replace:: 1.2\n\n"
        "See :ref:`the water\nwheel <wheel>`, :PEP:`8` of |v| or |w| and ``:pep:`7```.\n\n"
        ".. unknown:: argument\n   :option: 1\n\n   Its content.\n\n"
        "Parts\n-----\n\n* .. _mill:\n\n  mill\n* store\n",
    )
    assert loaded.title == "Mills"
    assert "Parts\n-----\n\n\n\n* mill\n* store" in loaded.text
    (chunk,) = split(loaded, "/")
    assert "See the water\nwheel, PEP 8 of 1.2 or |w| and ``:pep:`7```." in chunk.page_content
    assert "Its content." in chunk.page_content
    assert "\n    .. code-block:: sh\n\n        ls\n" in loaded.text
    for gone in (
        "toctree", "include", "comment", "_mills", "_inns", "orphan", "A. B.", "C.", "|ci|", "cog",
        "import", "wide",
    ):  # fmt: skip
        assert gone not in chunk.page_content
    at = chunk.page_content.index("* store")
    lines = lines_between(chunk.page_content, chunk.metadata["lines"], at, at + 7)
    assert (folder / "a.rst").read_text().split("\n")[lines[0] - 1] == "* store"


@settings(deadline=None)
@given(st.text(alphabet="ab.:*=-|+`_ \n\t", max_size=120), st.sampled_from(["markdown", "rst"]))
@example("=\n=\n=\n", "rst")
@example(".. a::\n\n  .. b::\n", "rst")
def test_any_text_has_blocks(text: str, markup: Markup) -> None:
    blocks = blocks_of(text, markup)
    ends = [0, *(block.end for block in blocks)]
    between = [text[end : block.start] for end, block in zip(ends, blocks, strict=False)]
    assert not "".join([*between, text[ends[-1] :]]).strip()


def test_names_versions_and_abbreviations_end_no_sentence() -> None:
    text = (
        "It raises httpx.ProxyError if the proxy of Python 3.11.2 fails. Set --no-cache.dir, e.g. "
        "for No. 5. See click.Option. Done."
    )
    assert sentences_of(text) == [
        "It raises httpx.ProxyError if the proxy of Python 3.11.2 fails.",
        "Set --no-cache.dir, e.g. for No. 5.",
        "See click.Option.",
        "Done.",
    ]
    assert "".join(split_sentences(text)) == text


@given(st.lists(st.integers(1, 9)))
def test_line_numbers_are_written_and_read(numbers: list[int]) -> None:
    assert line_numbers(lines_written(numbers)) == numbers


def test_a_hundred_sentences_stand_on_the_lines_that_their_chunk_names() -> None:
    check_a_hundred_sentences(DOCS)


@pytest.mark.data
@pytest.mark.parametrize("name", CORPORA)
def test_a_hundred_sentences_of_others_stand_on_their_lines(data: Path, name: str) -> None:
    check_a_hundred_sentences(data / "docs/corpus" / name)


def check_a_hundred_sentences(folder: Path) -> None:
    chance = random.Random(7)  # noqa: S311 - no secret
    files = [file for file in find_files([folder]).files if file.suffix in {".md", ".rst"}]
    documents = [one for file in chance.sample(files, min(20, len(files))) for one in load(file)]
    chunks = [c for one in documents if isinstance(one, SourceText) for c in split(one, "/")]
    for _ in range(100):
        chunk = chance.choice(chunks)
        text, start = chunk.page_content, 0
        places = [(start, start := start + len(piece)) for piece in split_sentences(text) if piece]
        begin, end = chance.choice([place for place in places if text[slice(*place)].strip()])
        first, last = lines_between(text, chunk.metadata["lines"], begin, end)
        lines = Path(chunk.metadata["source"]).read_text(encoding="utf-8").split("\n")
        held = letters("".join(lines[first - 1 : last]))
        for line in text[begin:end].split("\n"):  # HTML has the address of a link before its label.
            assert is_within(letters(re.sub(r"\]\(http[^()]*\)", "]", line)), held)


def test_escaped_spaces_are_gone_and_code_keeps_what_looks_like_markup(folder: Path) -> None:
    code = "``a\\ b``, C:\\dir::\n\n   x\\ y\n\n>>> ask(':a:`b`') \\\n... `c <d>`_\n"
    text = read(folder, "a.rst", f"``try``...\\ ``except``...\\\n``else``, {code}").text
    assert text == f"``try``...``except``...\n``else``, {code}"


def test_the_target_of_a_name_without_a_role_is_no_text(folder: Path) -> None:
    text = "Call `grind\n<mill.Mill.grind>` or `~mill.Mill`, not `mill <file>` or ``a <b.c>``.\n"
    assert read(folder, "a.rst", text).text == text.replace("\n<mill.Mill.grind>` ", "`\n", 1)


def test_code_that_docutils_does_not_know_an_option_of_is_cut_with_its_head() -> None:
    head = ".. code-block:: py\n   :caption: a.py\n\n"
    steps = "".join(f"   step_{n} = '{PROSE}'\n\n" for n in range(30))
    text = f"T\n=\n\n.. tip::\n\n   So.\n\n{head}{steps}End.\n"
    first, *others = chunks_of(text, "rst")
    assert len(others) > 1
    assert all(chunk.page_content.startswith(f"{head}   step") for chunk in others)
    assert f"   So.\n\n{head}   step" in first.page_content


@pytest.mark.parametrize("opening", ['=== "Do"', "!!! example"])
def test_parts_of_code_in_a_tab_have_its_fences(opening: str) -> None:
    steps = "".join(f"    step_{n} = '{PROSE}'\n\n" for n in range(30))
    first, *others = chunks_of(f"# T\n\n{opening}\n\n    ```py\n{steps}    ```\n\nEnd.\n")
    assert len(others) > 1
    for chunk in (first, *others):
        assert f"{opening}\n\n    ```py\n    step" in chunk.page_content
        assert chunk.page_content.removesuffix("\n\nEnd.").endswith("\n    ```")


def test_a_label_that_is_a_link_by_itself_has_no_brackets(folder: Path) -> None:
    text = "It is [PEP 440], as [x] says, `[PEP 440]`.\n\n[pep 440]: https://example.org\n"
    shown = "It is PEP 440, as [x] says, `[PEP 440]`.\n\n\n"
    assert read(folder, "a.md", text).text == shown


def test_a_line_of_substitutions_with_more_is_text(folder: Path) -> None:
    text = "|Mill|\n======\n\n|wheel|\n   It turns.\n\nBuilt by\n|owner|\nand others.\n"
    assert read(folder, "a.rst", text).text == text


def test_a_heading_is_its_lines_alone_and_nothing_stands_before_the_first_block() -> None:
    blocks = [
        ".. title:: Mills",
        "====\nPart\n====",
        "Run\n---",
        ".. code-block:: sh\n   :a: b\n\n   x",
    ]
    text = "\n\n".join(blocks)
    found = blocks_of(text, "rst")
    assert [text[block.start : block.end] for block in found] == blocks
    assert [block.kind for block in found] == ["prose", "heading", "heading", "code"]


def test_a_long_line_of_tildes_is_read_once(folder: Path) -> None:
    text = f"# Mills\n\n{'~' * 1_000_000}\n"
    assert read(folder, "a.md", text).text == text


def letters(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))


def is_within(part: str, whole: str) -> bool:
    """Say whether all characters of `part` stand in `whole`, in their order."""
    rest = iter(whole)
    return all(character in rest for character in part)
