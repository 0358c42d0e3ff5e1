"""Quoted documentation reads as its readers see it."""

import random
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crag.correction.strips import decompose
from crag.documents.loaders import load
from crag.documents.sources import SourceText
from crag.documents.splitting import split
from crag.text.as_read import as_read, with_fences
from crag.text.wholes import excerpt_at, lines_of
from tests.conftest import CORPORA

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("!!! info\n    These limits are for safety.", "Info: These limits are for safety."),
        ('!!! tip "By the way"\n    Use both.', "By the way: Use both."),
        ('??? note "More"\n    Two\n    lines.\n\nAfter it.', "More: Two lines.\n\nAfter it."),
        ('=== "pip"\n\n    ```sh\n    pip install x\n    ```', "pip:\n```sh\npip install x\n```"),
        ('??? question "Why so?"\n    It is.', "Why so? It is."),
        ("We met in the large\nroom.  \nThe chair was Ada Byron.\\\nWe ended late.",
         "We met in the large room.  \nThe chair was Ada Byron.  \nWe ended late."),
        ("[Get it](./x.zip){ .md-button } :material-download: here.", "Get it here."),
        (".. note:: You sign this once.", "Note: You sign this once."),
        (".. note::\n   You sign this\n   once.\n\nThen merge.",
         "Note: You sign this once.\n\nThen merge."),
        (".. versionadded:: 3.2\n   The `--all` option.",
         "Added in version 3.2: The `--all` option."),
        (".. code-block:: python\n   :linenos:\n\n   run()\n\nIt runs.",
         "```python\nrun()\n```\n\nIt runs."),
        ("See [one\nthat][ref].", "See one that."),
        ("See {ref}`exit-codes`, :doc:`../a_b` or :ref:`a.B`.", "See exit codes, a b or a.B."),
        ("These match\nnow:\n    - `a`\n      or so\n    - `b`\n\nSo.",
         "These match\nnow:\n- `a`\n  or so\n- `b`\n\nSo."),
        ("1. One\n\n   Two\n   lines:\n       - `a`\n       - `b`\n   - c\n2. Next",
         "1. One\n\n   Two\n   lines:\n   - `a`\n   - `b`\n   - c\n2. Next"),
        ("```py\n\na = 1\n\nb = 2\n\n```", "```py\na = 1\n\nb = 2\n```"),
        ("So.\n\n_Note: Set `a_b` to a_c. It is.", "So.\n\nNote: Set `a_b` to a_c. It is."),
        ("It is a_b._\n\n_Set_ it.", "It is a_b.\n\n_Set_ it."), ("_All._ So.", "_All._ So."),
        ("1. Run it::\n\n    run()\n\n   Then ``stop``.",
         "1. Run it:\n   ```\n   run()\n   ```\n\n   Then `stop`."),
        ("* Run it:\n\n  .. code:: sh\n\n     run\n\n  So.\n\n.. code:: sh\n\n   stop",
         "* Run it:\n\n  ```sh\n  run\n  ```\n\n  So.\n\n```sh\nstop\n```"),
        ("- a\n    - b\n        - c", "- a\n    - b\n        - c"),
        ("`HUP` &mdash; reload &lt;x&gt;&nbsp;or &#42;a&#42;, `&mdash;`, a&b;",
         "`HUP` — reload <x> or &#42;a&#42;, `&mdash;`, a&b;"),
        ("&#8238;a&#10;b&ensp;c&shy;&notes;", "&#8238;a b c&shy;&notes;"),
        (".. versionadded:: 3.2", "Added in version 3.2"),
        ("> [!tip] Use the mill.", "Use the mill."),
        ("Use it.\n\n.. tab:: Unix\n\n   .. literalinclude:: a.py\n\n.. note::\n\n   Mind.",
         "Use it.\n\nNote: Mind."),
        ("=====\n Use\n=====\n\nIt is so.\n\n----\n\nOr so.", "Use\n\nIt is so.\n\n----\n\nOr so."),
        ("=====  ====\nName   What\n=====  ====\n``a``  It\n       is.\n``b``\n=====  ====\n\nSo.",
         "| Name | What |\n| --- | --- |\n| `a` | It is. |\n| `b` |  |\n\nSo."),
        ("==  ==\na   b\n==  ==\n    c\nd   e\n==  ==",
         "| a | b |\n| --- | --- |\n|  | c |\n| d | e |"),
        ("==  ==\na   b\nwide one\n==  ==", "==  ==\na   b\nwide one\n==  =="),
        ("Gold\n\n    ✓ All of it\n    ✓ Large\n\n        Become one\n\n    Make x = 1",
         "Gold\n\n✓ All of it  \n✓ Large\n\nBecome one\n\n    Make x = 1"),
        (">\n> ## It\n>\n> It is\n>\n> so.\n>", "> It\n>\n> It is\n>\n> so."),
        ("Upon\n> this\n>\n> - one", "> Upon\n> this\n>\n> - one"),
        ("So it is:\n> it is", "So it is:\n> it is"), ("```\n> ls\n> a", "```\n> ls\n> a\n```"),
        (".. glossary::\n\n   mill\n      What ``grinds``.\n\n   wheel\n      What turns.",
         "mill: What `grinds`.\n\nwheel: What turns."),
        (".. rubric:: Repair\n\nRun it.", "Repair\n\nRun it."),
        (".. autoclass:: Api\n   :noindex:\n\n   .. automethod:: stop\n\n   .. automethod:: run\n",
         "`Api` `stop`\n\n`run`"),
        ("``a`` folder\n  All of\n  them.\nOther\n  More.",
         "`a` folder: All of them.\nOther: More."),
        ("The wheel goes round\n  And round again\nIt has no sound\n  But that of rain.",
         "The wheel goes round\nAnd round again\nIt has no sound\nBut that of rain."),
        ("Scripts are a great\n  common form\n  of it.", "Scripts are a great common form of it."),
        ("`Term`\n\n: What it\n  means.", "`Term`: What it means."),
        ("numpy>=2\nscipy\ntomli; python < '3'\nruff",
         "numpy>=2\nscipy\ntomli; python < '3'\nruff"),
        ("Title\n~~~~~\n\nIt\nis.\n\nOther\n~~~~~\n\nSo\nit is.",
         "Title\n\nIt is.\n\nOther\n\nSo it is."),
        (".. click:example::\n    hello()", "```\nhello()\n```"),
        (".. py:function:: run(x)\n\n   Runs it.", "`run(x)` Runs it."),
        (".. php:method:: run($x)\n\n   Runs it.", "`run($x)` Runs it."),
        ('x = 1\n"""\nOf it.\n"""\ny = 2', 'x = 1 """ Of it. """ y = 2'),
        ('"""""\nTitle\n"""""\n\nIt is.\n\nNext\n....\n\nSo.', "Title\n\nIt is.\n\nNext\n\nSo."),
        (".. image:: a.png\n   :alt: A\n\nText.", "Text."),
        ("Write so::\n\n    run()\n\nIt runs.", "Write so:\n```\nrun()\n```\n\nIt runs."),
        ("```{note}\nNot on Windows.\n```", "Note: Not on Windows."),
        ("```{code-block} sh\n:caption: x\nls\n```", "```sh\nls\n```"),
        ("```{eval-rst}\n    run()\n\n    stop()\n\nIt ran.\n\n.. tip::\n\n   Do it.\n```",
         "```\nrun()\n\nstop()\n```\n\nIt ran.\n\nTip: Do it."),
        ("```{eval-rst}\n        It is\n        so.\n\n    .. tip:: Do it.\n```",
         "It is so.\n\nTip: Do it."),
        ("```{eval-rst}\n.. tip:: Do it.\n```", "Tip: Do it."),
        (":::{warning}\nIt is hot.\n:::", "Warning: It is hot."),
        ("Private names\n-------------\n\nThey are internal.",
         "Private names\n\nThey are internal."),
        ("A :class:`Command` and :func:`~a.run <b>`.", "A Command and a.run."),
        ("The {class}`Command`, ``--x``, `this page`_.", "The Command, `--x`, this page."),
        ("See `the guide <https://a.b/c>`_.", "See the guide (https://a.b/c)."),
        ("See [the guide](https://a.b/c) and [that](x.md#y).",
         "See the guide (https://a.b/c) and that."),
        ('[Sign]({% page "/x/#y" %}) it, see [one][2]{: .big}.', "Sign it, see one."),
        ("![A picture](a.png) <!-- none --><b>Bold</b><br/>text", "A picture Bold text"),
        ("[![CI](https://a.b/c.svg)](https://a.b/d) ![A map](https://a.b/c.png) here.",
         "CI A map here."),
        ("Use `{: x}` and `[a](b)` for `<boolean>` or <duration>.",
         "Use `{: x}` and `[a](b)` for `<boolean>` or <duration>."),
        ("It runs handlers[name](request).", "It runs handlers[name](request)."),
        ("Plain words, 2 * 3 * 4, snake_case_.", "Plain words, 2 * 3 * 4, snake_case_."),
        ("| a | b |\n|---|---|\n| `x` | y |", "| a | b |\n|---|---|\n| `x` | y |"),
        ("It is\nso:\n\n```\na\n\nb\n```\n\nAnd\nso on.",
         "It is so:\n\n```\na\n\nb\n```\n\nAnd so on."),
        ("It\nis:\n\n- a\n  b\n\n  c\n  d\n\nAnd\nso on.",
         "It is:\n\n- a\n  b\n\n  c\n  d\n\nAnd so on."),
        ("So\n*it* is, and\n**that**.", "So *it* is, and **that**."),
        ("In this form:\n\n    [-+]?[nN][aA][nN]\n    0x8f\n\nAfter it.",
         "In this form:\n\n```\n[-+]?[nN][aA][nN]\n0x8f\n```\n\nAfter it."),
        ("Do so.\n\n.. tab:: Unix\n\n   .. code-block:: shell\n\n      ls",
         "Do so.\n\nUnix:\n```shell\nls\n```"),
        ("> [!NOTE]\n> Mind\n> the gap.\n\nGo.", "Note: Mind the gap.\n\nGo."),
        ("> [!warning]- Hot\n>\n> - Wait.\n> - Go.", "Hot:\n- Wait.\n- Go."),
        ("> She said\n> so.", "> She said\n> so."),
        ("It is 14[^1] or `[^1]`[^two].\n\n[^1]: Not for\n    twins.",
         "It is 14 or `[^1]`.\n\nNot for twins."),
        ("It is so [1]_, and [#name]_.\n\n.. [1] Not always.", "It is so, and.\n\nNot always."),
        ("Match [^abc]+ and a[1].", "Match [^abc]+ and a[1]."),
        ("See [Stoer]_ and x[a]_b.\n\n.. [a.b-c] J. Doe", "See [Stoer] and x[a]_b.\n\nJ. Doe"),
        ("[:octicons-arrow-right-24: More](b.md)", "More"),
        ("---\n\nIt is.\n\n* * *\n\nSo.\n\n-----\n\n___", "It is.\n\n* * *\n\nSo."),
        ("Ask:\n\n   >>> [f](x)\n   ... # Why? So.\n   'a*b*'\n\nIt is.",
         "Ask:\n\n```\n>>> [f](x)\n... # Why? So.\n'a*b*'\n```\n\nIt is."),
        ("Term\n: What it\n  means.\n\nOther\n:   That.", "Term: What it means.\n\nOther: That."),
        (".. only:: html\n\n   Two\n   words.", "Two words."),
        ("#. First.\n#. Second\n   one.", "- First.\n- Second\n   one."),
        (":Author: A\n   B\n:Type: C d", "Author: A B\n\nType: C d"),
        (":Table:\n    Lets you\n    look.", "Table:\n    Lets you\n    look."),
        ("Use the mill[^not-always]. Or [^a-z].", "Use the mill. Or [^a-z]."),
        ("[:octicons-file-code-24:][_1]{: .source } <cite>Ada</cite>", "Ada"),
        ("Stop the mill, then you see this::", "Stop the mill, then you see this:"),
        ("Pick three.*\n\nRelease **x**. **So it is.", "Pick three.\n\nRelease **x**. **So it is."),
        ("It is.\n\n**So it is. And so.", "It is.\n\nSo it is. And so."),
        ("1. Do:\n\n   ```\n   a\n   ```\n\n   ...but not\n   so.\n2. End.",
         "1. Do:\n\n   ```\n   a\n   ```\n\n   ...but not\n   so.\n2. End."),
        ("src/crag/a/very/long/path/of/a_file.py\ndocs/a.md\nb.md",
         "src/crag/a/very/long/path/of/a_file.py\ndocs/a.md\nb.md"),
        (r"mill\_wheel and a.\_b, but \*nix in 2023\.", r"mill_wheel and a._b, but \*nix in 2023."),
        ("![CI][x] [`Mill[A]`](https://a.b/c) is.", "CI `Mill[A]` (https://a.b/c) is."),
        ("$$ a \\\\\nb $$", "$$ a \\\\ b $$"),
        ("So[^1].\n\n[^1]:\n    Due to it.", "So.\n\nDue to it."),
        ("So [3]_.\n\n.. [3]", "So."),
        ("Install it directly::\n\nOr by cloning.", "Install it directly:\n\nOr by cloning."),
        (".. tabs::\n\n  .. group-tab:: Unix\n\n    Do:\n\n    .. code-block:: sh\n\n      ls",
         "Unix: Do:\n\n```sh\nls\n```"),
        (".. mill::\n\n   It turns.\n\n   .. note:: Mind.", "It turns.\n\nNote: Mind."),
        (".. list-table::\n\n   * - | `a`\n       | `b`\n     - c",
         "| `a`, `b` | c |\n| --- | --- |"),
        ('![A map](a.png){ width="460" } here.', "A map here."),
        ("Use `#!css :is()` or `#!/bin/sh -e`.", "Use `:is()` or `#!/bin/sh -e`."),
        (":end-of-life: After\nfive years.", "end-of-life: After five years."),
        (".. list-table::\n   :header-rows: 1\n\n   * - N\n     - B\n   * - a\n       b\n     - c",
         "| N | B |\n| --- | --- |\n| a b | c |"),
        ("+---+---+\n| a | b |\n+===+===+\n| 1 | 2 |\n|   | 3 |\n+---+---+",
         "| a | b |\n| --- | --- |\n| 1 | 2 3 |"),
        ("+---+---+\n| a | b |\n+---+---+\n| wide  |\n+-------+",
         "+---+---+\n| a | b |\n+---+---+\n| wide  |\n+-------+"),
        ("| ```Mill <https://a.b>`__`` | ``:func:`run``` |",
         "| `` `Mill <https://a.b>`__ `` | `` :func:`run` `` |"),
        ("_[Back](../)_ to the [plan [PDF, 2 kB]](https://a.b/c) and [\\[Draft\\] plan](d.md).",
         "_Back_ to the plan [PDF, 2 kB] (https://a.b/c) and \\[Draft\\] plan."),
        ('Read [this]({% page "a/b"\n%}), ask {% channel "mill-talk" %} or {% page "a/b" %}so.',
         "Read this, ask mill-talk or so."),
        ("Known names:\n\n``a``\n    All of\n    them.", "Known names:\n\n`a`: All of them."),
        ("try\n    fly()", "try\n    fly()"),
        ("Submit it.\\", "Submit it."),
        ("*   .. autoclass:: Mill\n       :noindex:", "`Mill`"),
        ('.. csv-table:: Mills\n   :header: "Name", "Age"\n\n   "`Old, Mill`_", 90\n',
         "Mills\n\n| Name | Age |\n| --- | --- |\n| Old, Mill | 90 |"),
        ("So:\n\n.. csv-table::\n   :file: a.csv\n\nMore.", "So:\n\nMore."),
        ("[#] It is\nold.", "It is old."),
        ("On Unix:\n\n::", "On Unix:"),
    ],
)  # fmt: skip
def test_markup_becomes_what_it_says(written: str, read: str) -> None:
    assert as_read(written) == read


@pytest.mark.parametrize(
    ("cut", "balanced"),
    [
        ("run()\n```", "```\nrun()\n```"),
        ("Do so:\n\n```\nrun()", "Do so:\n\n```\nrun()\n```"),
        ("Do so:\n\n~~~py\nrun()", "Do so:\n\n~~~py\nrun()\n~~~"),
        ("run()\n```\n\nor\n\n```py\nrun(1)\n```", "```\nrun()\n```\n\nor\n\n```py\nrun(1)\n```"),
        ("```\nrun()\n```", "```\nrun()\n```"),
        ("```\n\nOr so:\n\n```py\nrun(1)\n```", "\nOr so:\n\n```py\nrun(1)\n```"),
        ("It is.\n\n```", "It is.\n"),
    ],
)
def test_code_that_was_cut_has_both_fences(cut: str, balanced: str) -> None:
    assert with_fences(cut) == balanced


def test_what_a_term_of_asciidoc_means_is_no_code() -> None:
    assert as_read("port::\n\tIts number,\n\tor name.\n") == "port: Its number, or name."
    assert as_read("port::\n\n    a = 1") == "port:\n```\na = 1\n```"


def test_code_that_was_cut_within_an_item_ends_within_it() -> None:
    cut = "- run()\n\n  ```\n  a = 1"
    assert with_fences(cut) == as_read(cut) == f"{cut}\n  ```"
    assert as_read(f"{cut}\n  b") == f"{cut}\n  b\n  ```"
    assert with_fences("  a = 1\n  ```\n\n  More.") == "  ```\n  a = 1\n  ```\n\n  More."


@given(st.lists(st.sampled_from(
    ["```", "```{note}", ":::", "text", "", "    more", ".. note:: x", "!!! tip", "a::", "-----",
     "`a", "[b](c", "{% x", "<!--", "- one::", "  .. code:: c", "      x", "    ```", '=== "Tab"',
     "```{eval-rst}", "> - two"]
)))  # fmt: skip
def test_any_lines_are_read_and_keep_their_fences_in_pairs(lines: list[str]) -> None:
    read = as_read("\n".join(lines))
    assert not is_open(read)
    assert ("text" in read) == ("text" in lines)


def is_open(text: str) -> bool:
    """Return whether code begins and does not end, as CommonMark has it."""
    fence = ""
    for line in map(str.strip, text.split("\n")):
        if fence:
            fence = "" if line.startswith(fence) and not line.strip("`~") else fence
        elif line.startswith(("```", "~~~")):
            fence = line[:3]
    return bool(fence)


MARKUP = re.compile(
    r"^\s*(?:\.\. [\w:-]+::|!!! |\?\?\? |=== \"|`{3,}\{)|:[a-z]+:`|\]\([^)]*\)|\{%|<!--"
    r"|\{[:#.][a-z -]",
    re.MULTILINE,
)


def pages_of(folder: Path, chance: random.Random) -> list[Path]:
    """Draw twelve files, so that all folders count alike."""
    pages = sorted(file for file in folder.rglob("*") if file.suffix in {".md", ".rst", ".txt"})
    return chance.sample(pages, min(12, len(pages)))


def test_two_hundred_drawn_quotations_are_whole_and_without_markup() -> None:
    check_two_hundred_quotations([ROOT / "docs"])


@pytest.mark.data
def test_two_hundred_drawn_quotations_of_others_are_whole_and_without_markup(data: Path) -> None:
    check_two_hundred_quotations([data / "docs/corpus" / name for name in CORPORA])


def check_two_hundred_quotations(folders: list[Path]) -> None:
    chance = random.Random(7)  # noqa: S311 - no secret
    files = [file for one in folders for file in pages_of(one, chance)]
    loaded = [one for file in files for one in load(file) if isinstance(one, SourceText)]
    chunks = [chunk.page_content for one in loaded for chunk in split(one, str(ROOT))]
    for _ in range(200):
        strip = chance.choice(decompose(chance.choice(chunks)))
        ranges = excerpt_at(strip, chance.randrange(len(strip)), 60)
        said = "\n".join(as_read(strip[start:end]) for start, end in ranges)
        assert not is_open(said), said
        prose = re.sub(r"```[\s\S]*?```|`[^`\n]*`", "", said)
        assert not MARKUP.search(prose), said
        rows = [line for line in prose.split("\n") if line.lstrip().startswith("|")]
        assert all(line.rstrip().endswith("|") for line in rows), said
        ends = {end for place in ranges for end in place}
        for line in lines_of(strip):
            if line.kind in {"item", "row"}:
                text = strip[line.start : line.end]
                inside = line.start + len(text) - len(text.lstrip()) + 1
                cut = range(inside, line.start + len(text.rstrip()))
                assert ends.isdisjoint(cut), said


def test_a_reference_through_many_folders_is_read_at_once() -> None:
    target = "../" * 60 + "Build("
    assert as_read(f"See {{doc}}`{target}` for more.") == f"See {target} for more."


def test_a_paragraph_that_was_cut_within_its_first_line_is_one_line() -> None:
    cut = "If any are\n        running, they are killed\n        without warning."
    assert as_read(cut) == "If any are running, they are killed without warning."
    assert as_read("Usage\n    prints x = 3.") == "Usage\n    prints x = 3."
