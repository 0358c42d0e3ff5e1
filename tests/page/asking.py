"""What the browser tests do again and again."""

from typing import Any

ENDED = ", ".join(
    f"#answer[data-phase={phase}]"
    for phase in ("done", "likely", "abstained", "failed", "broken", "cancelled")
)


def ask(page: Any, question: str, *, until: str = ENDED) -> None:
    """Ask with the keyboard, and wait until the page shows `until`."""
    page.fill("#question", question)
    page.press("#question", "Enter")
    page.wait_for_selector(until, timeout=60_000)


def phase(page: Any) -> str:
    """Return how the run ended, or how far it is."""
    return str(page.get_attribute("#answer", "data-phase"))


def open_everything(page: Any) -> None:
    """Open whatever is folded, until nothing is drawn anew that is folded again."""
    opened = """() => {
      const folded = [...document.querySelectorAll("details:not([open])")];
      folded.forEach((one) => one.open = true);
      return folded.length === 0;
    }"""
    page.wait_for_function(opened, polling=100)


def watch_nodes(page: Any) -> None:
    """Write down from now on in which order nodes change."""
    page.evaluate("""() => {
      window.order = [];
      const note = ({target: {dataset}}) => order.push(`${dataset.node} ${dataset.state}`);
      new MutationObserver((changes) => changes.forEach(note)).observe(
        document.getElementById("graph"), {subtree: true, attributeFilter: ["data-state"]});
    }""")


def changes(page: Any) -> list[str]:
    """Return the changes since then, each once, without those that repeat what was known."""
    found: list[str] = page.evaluate("window.order")
    return list(dict.fromkeys(found))


def set_setting(page: Any, **values: str | bool) -> None:
    """Change settings in their form, and apply them."""
    page.click("#open-settings")
    page.evaluate("document.querySelectorAll('.level').forEach((level) => level.open = true)")
    for name, value in values.items():
        field = page.locator(f"#settings [name={name}]")
        if isinstance(value, bool):
            field.set_checked(value)
        elif field.evaluate("field => field.tagName") == "SELECT":
            field.select_option(value)
        else:
            field.fill(value)
    page.click("#settings button[type=submit]")
