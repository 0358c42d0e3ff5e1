"""The code of an answer, which stays as it is written, and the prose around it."""

import re

_CODE = re.compile(
    r"\\."
    r"|(?P<fence>^[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+){0,9}(?P<ticks>`{3,}(?=[^`\n]*$)|~{3,})"
    r".*?(?:^[ \t>]*(?P=ticks)[`~]*[ \t]*$|\Z))"
    r"|(?P<span>(?P<run>`+)(?!`)(?:(?!\n[ \t]*(?:\n|[|#>]|[-*+][ \t])).)+?(?<!`)(?P=run)(?!`))"
    r"|`+",
    re.MULTILINE | re.DOTALL,
)
"""Code in a fence, which lasts to the end where nothing closes it, or between backticks of one
paragraph; escapes and other backticks are matched so that nothing begins within them."""


def prose_and_code(source: str) -> list[str]:
    """Split an answer into its pieces: prose, code, prose and so on, from prose to prose."""
    pieces, end = list[str](), 0
    for found in _CODE.finditer(source):
        if found["fence"] or found["span"]:
            pieces += [source[end : found.start()], found[0]]
            end = found.end()
    return [*pieces, source[end:]]
