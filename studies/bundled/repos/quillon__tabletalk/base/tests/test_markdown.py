from tabletalk import parse_row, write_row


def test_parse_row():
    assert parse_row("| a | b |") == ["a", "b"]


def test_write_row():
    assert write_row(["a", "b"]) == "| a | b |"
