import pytest

from spanwise import parse_duration


def test_parse():
    assert parse_duration("1h30m") == 5400
    assert parse_duration("2d") == 172800


@pytest.mark.parametrize("text", ["", "h", "12", "1x"])
def test_refuses(text):
    with pytest.raises(ValueError):
        parse_duration(text)
