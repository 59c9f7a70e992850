from tabletalk import cell_width, clip


def test_plain_text():
    assert cell_width("abc") == 3
    assert cell_width("") == 0


def test_clip_keeps_what_fits():
    assert clip("abc", 3) == "abc"


def test_clip_shortens():
    assert clip("abcdef", 4) == "abc…"
