"""Durations from text."""

import re

UNITS = {"d": 86400, "h": 3600, "m": 60, "s": 1}
_PART = re.compile(r"(\d+)([dhms])")


def parse_duration(text):
    """Seconds in a text such as ``1h30m``; ValueError for anything else."""
    rest = text.strip()
    if not rest:
        raise ValueError("empty duration")
    seconds = 0
    while rest:
        part = _PART.match(rest)
        if part is None:
            raise ValueError(f"not a duration: {text!r}")
        count, unit = part.groups()
        seconds += int(count) * UNITS[unit]
        rest = rest[part.end() :]
    return seconds
