"""Which side a column is aligned to."""

import re

from tabletalk.width import cell_width

_NUMBER = re.compile(r"\d+(\.\d+)?")


def is_number(text):
    """Whether a cell reads as a number."""
    return _NUMBER.fullmatch(text.strip()) is not None


def column_alignment(cells):
    """``right`` for a column of numbers, ``left`` for any other."""
    return "right" if cells and all(is_number(cell) for cell in cells) else "left"


def pad(text, columns, alignment):
    """Fills a cell up to so many columns."""
    gap = " " * max(0, columns - cell_width(text))
    return gap + text if alignment == "right" else text + gap
