from tabletalk import render


def test_render():
    assert render([["pear", "3"], ["fig", "12"]]) == "pear   3\nfig   12"


def test_render_nothing():
    assert render([]) == ""
