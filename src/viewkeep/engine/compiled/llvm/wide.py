"""Integers of several words in LLVM: exact products, and floats as integers of a window.

A float is a whole number times a power of two. In units of 2^-e, a sum of floats is a sum of
integers: exact, in any order, and undone by subtraction. `binary` makes a float such an integer;
one that is not a multiple of the unit, or too large, sets the mark OUTSIDE and counts as zero, so
that the same row with its sign turned takes back what it did.
"""

import re

_NAME = re.compile(r"w(\d)_")
_FUNCTION = re.compile(r"(?:set_)?(?:wide|binary)(\d)(?:_at)?")
_USES = re.compile(r"\b(?:w|wide|binary|set_wide)(\d)(?:_|\()")

_UNPACK = """\
  %high = lshr i64 %bits, 52
  %exponent = and i64 %high, 2047
  %fraction = and i64 %bits, 4503599627370495
  %whole = or i64 %fraction, 4503599627370496
  %tiny = icmp eq i64 %exponent, 0
  %mantissa = select i1 %tiny, i64 %fraction, i64 %whole
  %one = select i1 %tiny, i64 1, i64 %exponent
  %place = sub i64 %one, 1075"""
"""A float from its %bits: the %mantissa times 2^%place."""


def is_wide(name: str) -> bool:
    """Whether a variable is an integer of several words."""
    return _NAME.match(name) is not None


def is_wide_function(name: str) -> bool:
    """Whether a function makes, reads or writes such integers."""
    return _FUNCTION.fullmatch(name) is not None


def wide_width(name: str) -> int:
    """How many words: `w2_x` and `wide2_at` have two.

    >>> wide_width("w3_total"), wide_width("set_wide2_at")
    (3, 2)
    """
    found = _NAME.match(name) or _FUNCTION.fullmatch(name)
    assert found is not None
    return int(found.group(1))


def wide_text(text: str) -> str:
    """LLVM of the helpers for all widths that occur in a text."""
    widths = sorted({int(each) for each in _USES.findall(text)})
    parts = [_WINDOW] if "note_window(" in text else []
    return "\n".join(parts + [_helpers(64 * width) for width in widths])


def _helpers(bits: int) -> str:
    """The magnitudes of factors that have a and b bits have a product of at most a + b bits."""
    kind = f"i{bits}"
    return f"""
declare {{ {kind}, i1 }} @llvm.sadd.with.overflow.{kind}({kind}, {kind})
declare {{ {kind}, i1 }} @llvm.ssub.with.overflow.{kind}({kind}, {kind})
declare {kind} @llvm.ctlz.{kind}({kind}, i1)

define internal {kind} @multiply_{kind}(i64 %s, {kind} %a, {kind} %b) alwaysinline {{
  %sa = ashr {kind} %a, {bits - 1}
  %ma = xor {kind} %a, %sa
  %za = call {kind} @llvm.ctlz.{kind}({kind} %ma, i1 false)
  %sb = ashr {kind} %b, {bits - 1}
  %mb = xor {kind} %b, %sb
  %zb = call {kind} @llvm.ctlz.{kind}({kind} %mb, i1 false)
  %za64 = trunc {kind} %za to i64
  %zb64 = trunc {kind} %zb to i64
  %room = add i64 %za64, %zb64
  %large = icmp ult i64 %room, {bits + 2}
  %rare = call i1 @llvm.expect.i1(i1 %large, i1 false)
  br i1 %rare, label %note, label %done
note:
  %place = inttoptr i64 %s to ptr
  %old = load i64, ptr %place
  %marks = or i64 %old, 4
  store i64 %marks, ptr %place
  br label %done
done:
  %product = mul {kind} %a, %b
  ret {kind} %product
}}

define internal {kind} @binary_{kind}(i64 %s, i64 %bits, i64 %e) alwaysinline {{
{_UNPACK}
  %shift = add i64 %place, %e
  %nothing = icmp eq i64 %mantissa, 0
  %left = icmp sge i64 %shift, 0
  br i1 %left, label %up, label %down
up:
  %far = icmp sgt i64 %shift, {bits - 55}
  %near = select i1 %far, i64 0, i64 %shift
  %endless = icmp eq i64 %exponent, 2047
  %above = or i1 %far, %endless
  %longer = zext i64 %mantissa to {kind}
  %by = zext i64 %near to {kind}
  %raised = shl {kind} %longer, %by
  br label %both
down:
  %back = sub i64 0, %shift
  %gone = icmp sgt i64 %back, 52
  %some = select i1 %gone, i64 0, i64 %back
  %kept = lshr i64 %mantissa, %some
  %again = shl i64 %kept, %some
  %cut = icmp ne i64 %again, %mantissa
  %lost = or i1 %gone, %cut
  %lowered = zext i64 %kept to {kind}
  br label %both
both:
  %value = phi {kind} [ %raised, %up ], [ %lowered, %down ]
  %wrong = phi i1 [ %above, %up ], [ %lost, %down ]
  %something = xor i1 %nothing, true
  %bad = and i1 %wrong, %something
  %unlikely = call i1 @llvm.expect.i1(i1 %bad, i1 false)
  br i1 %unlikely, label %note, label %good
note:
  %words = inttoptr i64 %s to ptr
  %old = load i64, ptr %words
  %marks = or i64 %old, 2
  store i64 %marks, ptr %words
  ret {kind} 0
good:
  %minus = sub {kind} 0, %value
  %negative = icmp slt i64 %bits, 0
  %signed = select i1 %negative, {kind} %minus, {kind} %value
  ret {kind} %signed
}}
"""


_WINDOW = f"""
declare i64 @llvm.ctlz.i64(i64, i1)
declare i64 @llvm.cttz.i64(i64, i1)

define internal i64 @note_window(i64 %at, i64 %bits) {{
{_UNPACK}
  %nothing = icmp eq i64 %mantissa, 0
  br i1 %nothing, label %end, label %some
some:
  %zeros = call i64 @llvm.cttz.i64(i64 %mantissa, i1 false)
  %low = add i64 %place, %zeros
  %space = call i64 @llvm.ctlz.i64(i64 %mantissa, i1 false)
  %length = sub i64 64, %space
  %finite = add i64 %place, %length
  %endless = icmp eq i64 %exponent, 2047
  %top = select i1 %endless, i64 5000, i64 %finite
  %words = inttoptr i64 %at to ptr
  %other = getelementptr i64, ptr %words, i64 1
  %least = load i64, ptr %words
  %most = load i64, ptr %other
  %below = icmp slt i64 %low, %least
  %newlow = select i1 %below, i64 %low, i64 %least
  %above = icmp sgt i64 %top, %most
  %newtop = select i1 %above, i64 %top, i64 %most
  store i64 %newlow, ptr %words
  store i64 %newtop, ptr %other
  ret i64 0
end:
  ret i64 0
}}
"""
