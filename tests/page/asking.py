"""What the browser tests do again and again."""

from typing import Any

ENDED = ".turn:last-child:not([data-phase=running], [data-phase=waiting])"
LAST = ".turn:last-child"


def ask(page: Any, question: str, *, until: str = ENDED) -> None:
    """Ask with the keyboard, and wait until the page shows `until`."""
    page.fill("#question", question)
    page.press("#question", "Enter")
    page.locator(until).first.wait_for(timeout=60_000)  # A handle would keep what it finds.


def phase(page: Any) -> str:
    """Return the verdict on the last question, or how far it is."""
    return str(page.get_attribute(LAST, "data-phase"))


def open_basis(page: Any) -> Any:
    """Open what the last answer rests on, with all that is folded in it, and return it."""
    page.evaluate(f"document.querySelector('{LAST} .basis').open = true")
    page.wait_for_selector(f"{LAST} .numbers")
    opened = """() => {
      const folded = [...document.querySelectorAll(".turn:last-child .panels details:not([open])")];
      folded.forEach((one) => one.open = true);
      return folded.length === 0;
    }"""
    page.wait_for_function(opened, polling=100)
    return page.locator(f"{LAST} .panels")


def set_setting(page: Any, **values: str | bool) -> None:
    """Change settings in their form, and apply them."""
    page.click("#open-settings")
    for name, value in values.items():
        field = page.locator(f"#settings [name={name}]")
        if isinstance(value, bool):
            field.set_checked(value)
        else:
            field.fill(value)
    page.click("#settings button[type=submit]")
