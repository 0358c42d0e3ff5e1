from crag.papers.bench.charts import chart
from crag.papers.views.display import Picture, Table, plain


def test_a_picture_is_its_words_where_none_can_be_shown() -> None:
    with chart((2.0, 2.0)) as figure:
        figure.add_subplot().plot([0, 1], [0, 1])
    picture = Picture(figure, "a line that rises")
    data, metadata = picture._repr_png_()
    assert repr(picture) == metadata["alt"] == "a line that rises"
    assert data.startswith(b"\x89PNG")


def test_a_table_in_markdown() -> None:
    table = Table(["score", "text"], [(0.5, "one"), (-1.0, None)], bold=[0], numeric=["score"])
    assert repr(table).splitlines() == [
        "| score | text |",
        "| ---: | --- |",
        "| **+0.50** | **one** |",
        "| -1.00 |  |",
    ]


def test_cells_are_text_whatever_they_hold() -> None:
    assert plain("a|b *c* <d>\n[e]") == "a\\|b \\*c\\* &lt;d\\> \\[e\\]"
