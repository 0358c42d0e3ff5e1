"""Foreign text stays text, whatever it is, and pages of other sites reach nothing."""

import random
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from tests.page.browser import LAST, ask, open_basis
from tests.web.site import Answer, website

pytestmark = pytest.mark.browser
ADA = "Who wrote the first program?"
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
    page = visit(f"{site}/?graph=chat")
    assert page.evaluate(DRAWN, {"fragments": fragments(1000)}) == []


def test_nesting_without_end_stays_text(visit: Visit, site: str) -> None:
    page = visit(f"{site}/?graph=chat")
    deep = [sign * 9000 for sign in (">", "> ", "- ", "[", "*a ", "![", "<", "`", "|")]
    assert page.evaluate(DRAWN, {"fragments": deep}) == []


def test_what_documents_web_and_model_say_stays_text(visit: Visit, site: str) -> None:
    page = visit(site)
    ask(page, ADA)
    basis = open_basis(page)
    said = basis.inner_text()
    for text in ("Ada <i>Lovelace</i>", "<script>document.title", "<img src=x", "the <s>first</s>"):
        assert text in said
    assert "<b>surely</b>" in page.inner_text(f"{LAST} .text")
    assert page.locator("main :is(img, script, b, i, s, u)").count() == 0
    assert page.locator("main a[href^='javascript']").count() == 0
    assert page.title() != "owned"


def test_markdown_is_drawn_whatever_the_document_was(visit: Visit, site: str) -> None:
    page = visit(f"{site}/?graph=chat")
    ask(page, ADA)
    rows = open_basis(page).locator(".passages .rows > li")
    said = rows.first.inner_text()
    for mark in ("##", "**", "`", "](", "\n- "):
        assert mark not in said
    assert "<b>No HTML</b> a picture" in said
    assert rows.first.locator("strong").all_inner_texts() == ["first"]
    assert rows.first.locator(".listed li").all_inner_texts() == ["for an engine", "in 1843"]
    assert "the engine of" in rows.nth(1).inner_text()
    assert page.locator(f"{LAST} .text strong").count() == 1


def test_nothing_loads_from_elsewhere(visit: Visit, demo: str) -> None:
    page = visit(demo)
    urls: list[str] = []
    page.on("request", lambda request: urls.append(request.url))
    page.reload()
    page.wait_for_selector("#graphs option", state="attached")
    ask(page, "What is a knowledge strip?")
    open_basis(page)
    assert urls
    assert all(url.startswith((demo.partition("#")[0], "blob:", "data:")) for url in urls)


def test_the_token_is_taken_out_of_the_address_kept_and_asked_for(visit: Visit, demo: str) -> None:
    page = visit(demo)
    assert "token" not in page.url
    tab = page.context.new_page()
    tab.goto(demo.partition("#")[0])
    tab.wait_for_selector("#graphs option", state="attached")
    stranger = visit(f"{demo.partition('#')[0]}#token=old-token-of-before", ready="#token")
    stranger.fill("#token", demo)
    stranger.click("#notice button")
    stranger.wait_for_selector("#graphs option", state="attached")
    assert stranger.locator("#notice").is_hidden()


@pytest.fixture(scope="module")
def evil() -> Iterator[int]:
    """Serve an empty page of another site; yield its port."""
    with website() as other:
        other.answers["/"] = Answer(b"<!doctype html><title>evil</title>")
        yield other.server_port


ATTACK = """async (base) => {
  const body = JSON.stringify({graph: "chat", question: "attack"});
  const read = [];
  for (const path of ["api/graphs", "api/threads", "api/documents", "v1/models", "ok"]) {
    await fetch(base + path).then((answer) => answer.text()).then(
      (text) => text && read.push(path), () => {});
  }
  for (const mode of ["cors", "no-cors"]) {
    for (const type of ["text/plain", "application/json"]) {
      const options = {method: "POST", mode, body, headers: {"Content-Type": type}};
      await fetch(base + "api/ask", options).then((answer) => answer.text()).then(
        (text) => text && read.push(`${mode} ${type}`), () => {});
    }
  }
  navigator.sendBeacon(base + "api/ask", new Blob([body], {type: "text/plain"}));
  const form = Object.assign(document.createElement("form"),
    {method: "POST", action: base + "api/ask", enctype: "text/plain", target: "frame"});
  const frame = Object.assign(document.createElement("iframe"), {name: "frame"});
  form.append(Object.assign(document.createElement("input"), {name: body, value: ""}));
  document.body.append(frame, form);
  form.submit();
  const framed = document.createElement("iframe");
  framed.src = base;
  document.body.append(framed);
  await new Promise((resolve) => setTimeout(resolve, 1000));
  return read;
}"""


@pytest.mark.parametrize("named", ["evil.test", "127.0.0.1"])
def test_a_page_of_another_site_or_port_reads_and_starts_nothing(
    browser: Any, site: str, evil: int, named: str
) -> None:
    page = browser.new_page()
    page.goto(f"http://{named}:{evil}/")
    assert page.evaluate(ATTACK, f"{site}/") == []
    frames = [frame for frame in page.frames if frame.url.startswith(site)]
    assert all(frame.query_selector("#ask") is None for frame in frames)
    page.close()
    assert httpx.get(f"{site}/api/threads").json() == []
