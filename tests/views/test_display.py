from pathlib import Path

from PIL import Image

from crag.papers.views.display import Picture, Table, plain, shortened
from crag.papers.views.theme import drawing


def picture(says: str = "a line that rises") -> Picture:
    with drawing(2.0) as figure:
        figure.add_subplot().plot([0, 1], [0, 1])
    return Picture(figure, says)


def test_a_picture_is_its_words_where_none_can_be_shown() -> None:
    data, metadata = picture()._repr_png_()
    assert repr(picture()) == metadata["alt"] == "a line that rises"
    assert data.startswith(b"\x89PNG")


def test_the_same_figure_gives_the_same_bytes_twice_as_dense_as_it_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "picture.png"
    picture().save(path)
    assert path.read_bytes() == picture().png()
    _, metadata = picture()._repr_png_()
    with Image.open(path) as image:
        assert abs(image.width - 2 * int(metadata["width"])) <= 1
        assert "Software" not in image.info


def test_a_table_in_markdown_and_in_plain_text() -> None:
    table = Table(["score", "text"], [(0.5, "one"), (-1.0, None)], bold=[0], numeric=["score"])
    assert table.markdown().splitlines() == [
        "| score | text |",
        "| ---: | --- |",
        "| **+0.50** | **one** |",
        "| -1.00 |  |",
    ]
    assert repr(table).splitlines() == ["score  text", "+0.50  one", "-1.00"]


def test_foreign_text_stays_text_on_one_line() -> None:
    table = Table(["text"], [("a|b\n<script>*[x](y)`$_",)])
    assert table.markdown().splitlines()[2] == (r"| a\|b &lt;script\>\*\[x\](y)\`\$\_ |")
    assert plain("5 < 6") == "5 &lt; 6"


def test_shortened_ends_in_an_ellipsis_only_where_it_is_cut() -> None:
    assert shortened("four  words\nof text", 18) == "four words of text"
    assert shortened("four words of text", 11) == "four words…"
