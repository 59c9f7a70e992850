"""Plain-text tables."""

from tabletalk.align import column_alignment, is_number, pad
from tabletalk.clip import clip
from tabletalk.markdown import parse_row, write_row
from tabletalk.render import render
from tabletalk.width import cell_width

__all__ = [
    "cell_width",
    "clip",
    "column_alignment",
    "is_number",
    "pad",
    "parse_row",
    "render",
    "write_row",
]
