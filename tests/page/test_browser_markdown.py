"""Markdown of documents and models: whatever it is, what follows it stays to be seen."""

import random
from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.browser
Visit = Callable[..., Any]
PIECES = (
    "```", "```python", "~~~~", "`", "``", "**", "*", "__", "_", "~~", "#", "## ", "> ", "- ",
    "1. ", "\n", "\n\n", "\n    ", "\t", "  \n", "| a | b |", "|---|---|", "|", "[x](",
    "[y]: http://e.test",
    "\n[1]: http://e.test/1\n", "![", "](z.png)", "](javascript:alert(1))", "[", "]", "[9]",
    "(", ")",
    "<b>", "</b>", "<script>", "<!--", "-->", "<div>\n", "<pre>", "<![CDATA[", "<?", "<textarea>",
    "&lt;", "&#0;", "&amp;", "\\", "---", "===", "“", "”", "word", "two words", "é 🎉", "http://e.test",
)  # fmt: skip
"""What Markdown is made of, and what opens something that nobody closes."""

DRAWN = """async ({fragments}) => {
  const {answerText} = await import("/page/answer.js");
  const source = (id) => ({id, title: id, url: `/d/${id}.md`, position: ""});
  const citations = [1, 2].map((number) => ({number, text: "", source: source(`${number}`)}));
  const lost = [];
  for (const fragment of fragments) {
    for (const [kind, answer] of [
      ["quoted", `“${fragment}” [1]\\n\\n“The **next** one.” [2]`],
      ["in a row", `“${fragment}” [1] “The **next** one.” [2]`],
      ["written", `${fragment}\\n\\nBy a model [1].\\n\\n- The **next** one [2].`],
    ]) {
      const drawn = answerText({answer, citations});
      const last = [...drawn.querySelectorAll(".cite")].at(-1);
      const line = last?.closest("p, li");
      const lost_in = line?.closest("pre, code, a:not(.cite)");
      const seen = line && !lost_in && /next/.test(line.textContent);
      const bold = kind === "written" || line?.querySelector("strong")?.textContent === "next";
      const cited = drawn.querySelector(".cite[data-cite='1']") && last?.dataset.cite === "2";
      const foreign = drawn.querySelector("script, img, b, textarea, [href^='javascript']");
      if (!seen || !bold || !cited || foreign) lost.push(`${kind}: ${answer}`);
    }
  }
  return lost;
}"""


def fragments(number: int) -> list[str]:
    chosen = random.Random(36)  # noqa: S311 - the same fragments each time
    return ["".join(chosen.choices(PIECES, k=chosen.randint(1, 12))) for _ in range(number)]


def test_nothing_swallows_what_follows_it(visit: Visit, site: str) -> None:
    page = visit(f"{site}/?graph=plain")
    assert page.evaluate(DRAWN, {"fragments": fragments(1000)}) == []


def test_nesting_without_end_stays_text(visit: Visit, site: str) -> None:
    page = visit(f"{site}/?graph=plain")
    deep = [sign * 9000 for sign in (">", "> ", "- ", "[", "*a ", "![", "<", "`", "|")]
    assert page.evaluate(DRAWN, {"fragments": deep}) == []


def test_the_dialect_of_github_is_read(visit: Visit, site: str) -> None:
    page = visit(f"{site}/?graph=plain")
    drawn = page.evaluate("""async () => {
      const {markdown} = await import("/page/markdown.js");
      return ["| a | b |\\n|---|---|\\n| c | ~~d~~ |", "| cut | `off` |"].map((text) => {
        const [table] = markdown(text);
        return [...table.querySelectorAll("tr")].map((row) =>
          [...row.cells].map((cell) => cell.innerHTML).join(" "));
      });
    }""")
    assert drawn == [["a b", "c <del>d</del>"], ["cut <code>off</code>"]]


def test_a_badge_in_a_list_is_whole(visit: Visit, site: str) -> None:
    page = visit(f"{site}/?graph=plain")
    beyond = page.evaluate("""async () => {
      const {answerText} = await import("/page/answer.js");
      const source = {id: "a", title: "A", url: "/d/a.md", position: ""};
      const citations = [{number: 1, text: "", source}];
      const drawn = answerText({answer: "- one [1]\\n  - two [1]\\n\\n1. three [1]", citations});
      document.getElementById("answer-body").replaceChildren(drawn);
      return [...drawn.querySelectorAll(".cite")].map((badge) => {
        const range = document.createRange();
        range.selectNodeContents(badge);
        const [text, box] = [range.getBoundingClientRect(), badge.getBoundingClientRect()];
        return Math.max(box.left - text.left, text.right - box.right);
      });
    }""")
    assert len(beyond) == 3
    assert max(beyond) <= 0
