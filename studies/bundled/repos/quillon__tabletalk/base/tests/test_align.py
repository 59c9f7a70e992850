from tabletalk import column_alignment, is_number, pad


def test_numbers():
    assert is_number("12")
    assert is_number(" 1.5 ")
    assert not is_number("12a")


def test_alignment():
    assert column_alignment(["1", "20"]) == "right"
    assert column_alignment(["1", "x"]) == "left"


def test_pad():
    assert pad("a", 3, "left") == "a  "
    assert pad("a", 3, "right") == "  a"
