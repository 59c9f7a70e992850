"""Shortening cells."""

ELLIPSIS = "…"


def clip(text, columns):
    """Shortens a text to at most so many columns, an ellipsis at its end."""
    if len(text) <= columns:
        return text
    return text[: columns - 1] + ELLIPSIS
