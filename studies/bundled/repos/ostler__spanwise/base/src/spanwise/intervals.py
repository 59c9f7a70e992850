"""Half-open intervals: pairs of a start and an end."""


def merge(intervals):
    """The intervals in order, those that overlap made one."""
    merged = []
    for start, end in sorted(intervals):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged


def gaps(intervals, start, end):
    """What of ``start`` to ``end`` the intervals leave free."""
    free = []
    for busy_start, busy_end in merge(intervals):
        free.append((start, busy_start))
        start = busy_end
    free.append((start, end))
    return free


def total(intervals):
    """The length that the intervals cover."""
    return sum(end - start for start, end in intervals)
