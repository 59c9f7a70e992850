"""Rows of Markdown tables."""


def parse_row(line):
    """Splits ``| a | b |`` into its cells."""
    inner = line.strip().strip("|")
    return [cell.strip() for cell in inner.split("|")]


def write_row(cells):
    """Writes cells as ``| a | b |``."""
    return "| " + " | ".join(cells) + " |"
