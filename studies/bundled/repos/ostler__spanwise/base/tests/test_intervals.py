from spanwise import gaps, merge, total


def test_merge_overlapping():
    assert merge([(3, 6), (1, 4)]) == [(1, 6)]
    assert merge([(5, 6), (1, 2)]) == [(1, 2), (5, 6)]


def test_gaps():
    assert gaps([(2, 3), (5, 6)], 0, 9) == [(0, 2), (3, 5), (6, 9)]


def test_total():
    assert total([(1, 3), (5, 6)]) == 3
