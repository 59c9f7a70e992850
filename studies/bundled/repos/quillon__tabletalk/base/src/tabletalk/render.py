"""Whole tables."""

from tabletalk.align import column_alignment, pad
from tabletalk.width import cell_width


def render(rows):
    """Renders rows of cells as aligned lines, two blanks between columns."""
    columns = list(zip(*rows))
    widths = [max(cell_width(cell) for cell in column) for column in columns]
    sides = [column_alignment(column) for column in columns]
    lines = []
    for row in zip(*columns):
        cells = [pad(cell, width, side) for cell, width, side in zip(row, widths, sides)]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)
