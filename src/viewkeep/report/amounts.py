"""Times, ratios and sizes for people."""

_UNITS = ((1, "s"), (60, "min"), (3600, "h"), (86400, "days"))


def duration(seconds: float) -> str:
    """A time in the unit that fits it.

    >>> [duration(each) for each in (0.0421, 42.1, 150, 7200, 500_000)]
    ['0.04 s', '42.1 s', '2 min', '2 h', '6 days']
    """
    if seconds < 120:
        return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.1f} s"
    length, unit = [each for each in _UNITS if seconds >= 2 * each[0]][-1]
    return f"{seconds / length:.0f} {unit}"


def ago(seconds: float) -> str:
    """How long ago something was.

    >>> ago(0.3), ago(42.1), ago(7200)
    ('now', '42 s ago', '2 h ago')
    """
    if seconds < 1:
        return "now"
    return f"{seconds:.0f} s ago" if seconds < 120 else f"{duration(seconds)} ago"


def times(ratio: float | None) -> str:
    """How many times faster.

    >>> times(3.14159), times(217.4), times(None)
    ('3.1x', '217x', '-')
    """
    if ratio is None:
        return "-"
    return f"{ratio:.1f}x" if ratio < 100 else f"{ratio:,.0f}x"


def size(count: int) -> str:
    """Bytes in the unit that fits them.

    >>> size(512), size(2_500_000)
    ('512 B', '2.5 MB')
    """
    amount, unit = float(count), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if amount < 1000:
            break
        amount, unit = amount / 1000, larger
    return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
