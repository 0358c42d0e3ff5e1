"""Texts of every construct of CommonMark and GitHub's extensions, and what is spliced into them."""

import random

EVIL = "http://evil.example/x"
KNOWN = "https://docs.example.org/a"

CONSTRUCTS = (
    "\tcode\tof a tab", "  - a\n\n\tb", "&nbsp; &amp; &#35; &#X22; &unknown;", "\\!\\\"\\# \\a \\\\",
    "***\n---\n___", " - - -", "# one\n## two ##\n####### none", "one\n===\ntwo\n---",
    "    code\n\n    more", "a\n    no code", "```py\ncode\n```", "~~~~\n```\n~~~~", "````\n```\n````",
    "```\nopen\n\ntext", "> ```\n> a\n\nb", "- ```\n  a\n  ```", "<div>\n*a*\n</div>", "<!-- a -->\n\nb",
    "<?php a ?>", "<![CDATA[\na\n]]>", "<!DOCTYPE html>", "<pre>\na\n\n</pre>", "<a b='c' d>\nx\n</a>",
    "[foo]: /url 'title'\n\n[foo]", "[foo]: \n   /url  \n 'the\ntitle'\n\n[Foo]", "[foo]: <>\n\n[foo]",
    "[foo]\n\n[foo]: one\n[foo]: two", "# [foo]\n[foo]: /url\n> bar", "> [foo]: /url\n\n[foo]",
    "a  \nb\\\nc", "> # a\n> b\nlazy", "> > > deep", "1.  a\n\n    - b\n\n      c", "- a\n- b\n\n\n- c",
    "10) a\n11) b", "`a``b` ``c`d``", "` `` `", "`a\nb`", "*a `*`*", "[a `](b)`", "<b2 data=\"`\">`",
    "*a* **b** ***c***", "_a_ __b__ a_b_c", "**a *b** c*", "*a [b*](c)", "[a](b \"c\")", "[a](<b c>)",
    "[a](b(c)d)", "[a](\\(b\\))", "[a](b&#38;c \"&quot;\")", "[a [b](c) d](e)", "![a [b](c)](d)",
    "[![a](b)](c)", "[a](b\n\"c\")", "[a][b]\n\n[b]: c", "[a][]\n\n[a]: b", "[a\\]](b)", "[a] (b)",
    "![a][b]\n\n[b]: c \"d\"", "![a]\n\n[a]: b", "!\\[a](b)", "\\![a](b)", "<http://a.example?b=c>",
    "<a+b:c>", "<mailto:a@b.example>", "<a.b@c.example>", "< http://a >", "<a/><b c = \"d\" e='f'/>",
    "<!-- a -- b -->", "a <?b?> c <!D e> <![CDATA[>&<]]>", "a<br>b<br/>", "| a | b |\n| - | :-: |\n| c \\| d | `e` |",
    "| a |\n| --- |\n> b", "~~a~~ ~b~", "www.example.com/a(b))", "http://a.example. (https://b.example/c)",
    "a.b+c@d.example", "- [ ] a\n- [x] b", "a[^1]\n\n[^1]: b", "setup.py, README.md and a.example/b?c",
    "It is so [1]. So is this [2], and [7].", "[1](p. 5) and [2]: the end", "See https://docs.example.org/a.",
)  # fmt: skip

PIECES = (
    f"![a]({EVIL})", f"[a]({EVIL})", f"<{EVIL}>", EVIL, "www.evil.example/x", "a@evil.com", "evil.com",
    f"[1]: {EVIL}\n", f"[foo]: {EVIL}", "[foo]", "![foo]", "[x][foo]", "[1]", "[9]", "`", "``", "```",
    "```\n", "\n```\n", "~~~\n", "<!--", "-->", "<b>", "<img src=x>", "\\", "&#96;", "&lt;", "&#91;",
    "[", "]", "(", ")", "![", "](", "|", "\n|---|---|\n", "\n| a | b |\n|--|--|\n", "> ", "- ", "    ",
    "\t", "\n", "\n\n", "# ", "*", "**", "_", "~~", "<br>", KNOWN, f"<{KNOWN}>", f"[p]({KNOWN})",
    "<div>\n", "</div>", "<?", "?>", "<![CDATA[", "]]>", "<script>", "//evil.com", "http&#58;//evil.com",
    "javascript:x", "[^1]:", "[^1]", "$", "'", '"', "é", "\u3002", "\xa0", "1. ", ":", "\\`", "\\[", "\r",
)  # fmt: skip


def mutated(seed: int) -> str:
    """Return a construct with up to six changes: pieces put in, characters taken out, lines cut."""
    chance = random.Random(seed)  # noqa: S311 - it is repeatable
    text = chance.choice(CONSTRUCTS)
    for _ in range(chance.randint(1, 6)):
        start = chance.randint(0, len(text))
        end = min(len(text), start + chance.randint(0, 6))
        put = chance.choice(PIECES) if chance.random() < 0.7 else chance.choice(CONSTRUCTS)  # noqa: PLR2004
        text = text[:start] + (put + text[start:] if chance.random() < 0.8 else text[end:])  # noqa: PLR2004
    return text
