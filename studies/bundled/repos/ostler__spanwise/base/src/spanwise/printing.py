"""Durations as text."""

from spanwise.parsing import UNITS


def format_duration(seconds):
    """A text such as ``1h30m`` for a number of seconds."""
    text = ""
    for unit, size in UNITS.items():
        count, seconds = divmod(seconds, size)
        if count:
            text += f"{count}{unit}"
    return text or "0s"
