"""How many columns a text takes on a terminal."""


def cell_width(text):
    """Columns that a text takes."""
    return len(text)
