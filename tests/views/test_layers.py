from hypothesis import given
from hypothesis import strategies as st

from crag.papers.views.layers import Spot, laid_out

NODES = ["a", "b", "c", "d", "e"]
EDGES = st.lists(st.tuples(st.sampled_from(NODES), st.sampled_from(NODES)), max_size=12)


def test_a_branch_keeps_its_row_until_it_is_joined() -> None:
    edges = [("a", "b"), ("a", "c"), ("c", "d"), ("b", "e"), ("d", "e")]
    assert laid_out(NODES, edges) == {
        "a": Spot(0, 0.0),
        "b": Spot(1, -0.5),
        "c": Spot(1, 0.5),
        "d": Spot(2, 0.5),
        "e": Spot(3, 0.0),
    }


def test_a_detour_pushes_what_follows_to_the_right() -> None:
    spots = laid_out(["a", "b", "c"], [("a", "b"), ("a", "c"), ("b", "c")])
    assert [spots[node].column for node in "abc"] == [0, 1, 2]


def test_a_cycle_ends() -> None:
    spots = laid_out(["a", "b", "c"], [("a", "b"), ("b", "b"), ("b", "a"), ("b", "c")])
    assert [spots[node].column for node in "abc"] == [0, 1, 2]


@given(EDGES)
def test_every_node_has_a_place_and_edges_that_close_no_cycle_lead_to_the_right(
    edges: list[tuple[str, str]],
) -> None:
    spots = laid_out(NODES, edges)
    assert set(spots) == set(NODES)
    assert all(0 <= spot.column < len(NODES) for spot in spots.values())
    forward = [edge for edge in edges if edge[0] < edge[1]]
    ordered = laid_out(NODES, forward)
    assert all(ordered[source].column < ordered[target].column for source, target in forward)
