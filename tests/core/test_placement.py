"""Labels of points: clear of one another, of points and of lines, or left out."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from triledger.core.figures.placement import crosses, meet, place

BOUNDS = (0.0, 0.0, 500.0, 250.0)
positions = st.tuples(st.floats(0, 500), st.floats(0, 250), st.floats(2, 8))
sizes = st.tuples(st.floats(5, 120), st.floats(8, 16))
lines = st.tuples(st.floats(0, 500), st.floats(0, 250), st.floats(0, 500), st.floats(0, 250))


def overlap(first, second) -> bool:
    return first[0] < second[2] and first[2] > second[0] and first[1] < second[3] and first[3] > second[1]


@given(st.lists(st.tuples(positions, sizes), max_size=20), st.lists(lines, max_size=4))
def test_labels_stay_inside_and_touch_nothing(labelled, segments) -> None:
    anchors = [anchor for anchor, _ in labelled]
    boxes = place(anchors, [size for _, size in labelled], segments, (), BOUNDS, gaps=(2.0, 12.0))
    placed = [box for box in boxes if box]
    for index, box in enumerate(placed):
        assert BOUNDS[0] <= box[0] <= box[2] <= BOUNDS[2]
        assert BOUNDS[1] <= box[1] <= box[3] <= BOUNDS[3]
        assert not any(overlap(box, other) for other in placed[:index])
        assert not any(crosses(segment, box) for segment in segments)
        assert not any(overlap(box, (x - r, y - r, x + r, y + r)) for x, y, r in anchors)


def test_a_label_keeps_its_size_and_stands_right_of_a_lonely_point() -> None:
    assert place([(100.0, 100.0, 5.0)], [(60.0, 14.0)]) == [(107.0, 93.0, 167.0, 107.0)]


def test_a_label_avoids_the_right_edge_and_taken_ground() -> None:
    (box,) = place([(490.0, 100.0, 5.0)], [(60.0, 14.0)], (), (), BOUNDS)
    assert box is not None
    assert box[2] <= 500
    (moved,) = place([(100.0, 100.0, 5.0)], [(60.0, 14.0)], (), [(105.0, 90.0, 200.0, 110.0)])
    assert moved is not None
    assert not overlap(moved, (105.0, 90.0, 200.0, 110.0))


def test_a_label_without_room_is_left_out_and_the_next_one_still_placed() -> None:
    wall = [(0.0, 50.0, 250.0, 250.0)]
    boxes = place([(100.0, 150.0, 5.0), (400.0, 150.0, 5.0)], [(60.0, 14.0)] * 2, (), wall, BOUNDS)
    assert boxes[0] is None
    assert boxes[1] is not None


def test_a_point_without_a_label_still_takes_ground() -> None:
    alone = place([(100.0, 100.0, 5.0)], [(60.0, 14.0)])
    beside = place([(100.0, 100.0, 5.0), (120.0, 100.0, 5.0)], [(60.0, 14.0), (0.0, 0.0)])
    assert beside[1] is None
    assert beside[0] != alone[0]


def test_a_label_goes_further_off_where_it_may() -> None:
    crowd = [(100.0 + 9 * dx, 100.0 + 9 * dy, 4.0) for dx in (0, -1, 1) for dy in (0, -1, 1)]
    sizes = [(60.0, 14.0)] + [(0.0, 0.0)] * 8
    assert place(crowd, sizes)[0] is None
    assert place([crowd[0], *crowd[3:4]], sizes[:2], gaps=(2.0, 20.0))[0] is not None


def test_lines_cross_boxes_and_one_another() -> None:
    box = (10.0, 10.0, 20.0, 20.0)
    assert crosses((0.0, 0.0, 30.0, 30.0), box)
    assert crosses((15.0, 0.0, 15.0, 30.0), box)
    assert crosses((12.0, 12.0, 13.0, 13.0), box)
    assert not crosses((0.0, 25.0, 30.0, 25.0), box)
    assert not crosses((0.0, 21.0, 9.0, 0.0), box)
    assert meet((0.0, 0.0, 10.0, 10.0), (0.0, 10.0, 10.0, 0.0))
    assert not meet((0.0, 0.0, 4.0, 4.0), (0.0, 10.0, 10.0, 0.0))
