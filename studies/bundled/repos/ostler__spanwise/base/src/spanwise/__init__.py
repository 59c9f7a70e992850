"""Durations and intervals."""

from spanwise.intervals import gaps, merge, total
from spanwise.parsing import parse_duration
from spanwise.printing import format_duration

__all__ = ["format_duration", "gaps", "merge", "parse_duration", "total"]
