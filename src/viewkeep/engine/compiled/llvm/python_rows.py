"""Python rows to columns of codes in machine code: for lists of tuples, and for single updates.

Rows of plain integers are read straight from the objects; anything else is left to Python. An
object's type is its second word, as it is in every CPython with a GIL; `available` asks.
"""

import ctypes
import sys
from collections.abc import Sequence

from viewkeep.engine.compiled.formats import PLAIN
from viewkeep.engine.compiled.layout import UPDATES


def _row_text(name: str, parameters: str, item: str) -> str:
    """A function that codes a tuple of so many items; `item` goes from %object to `stored`, with
    the code at %place, or to `no`."""
    return f"""
define internal i1 @{name}(ptr %row, i64 %arity, ptr %out{parameters}) {{
entry:
  %is = call i1 @is_a(ptr %row, ptr @PyTuple_Type)
  br i1 %is, label %sized, label %no
sized:
  %size = call i64 @PyTuple_Size(ptr %row)
  %same = icmp eq i64 %size, %arity
  br i1 %same, label %head, label %no
head:
  %i = phi i64 [ 0, %sized ], [ %next, %stored ]
  %more = icmp slt i64 %i, %arity
  br i1 %more, label %item, label %yes
item:
  %object = call ptr @PyTuple_GetItem(ptr %row, i64 %i)
  %place = getelementptr i64, ptr %out, i64 %i
{item}
stored:
  %next = add i64 %i, 1
  br label %head
yes:
  ret i1 true
no:
  ret i1 false
}}
"""


_NUMBER = """\
  %good = call i1 @plain(ptr %object, ptr %place)
  br i1 %good, label %stored, label %no"""

_TEXT_OR_NUMBER = f"""\
  %bit = shl i64 1, %i
  %own = and i64 %mask, %bit
  %words = icmp ne i64 %own, 0
  br i1 %words, label %text, label %number
text:
  %coded = call i1 @text(ptr %object, ptr %place, i64 %texts, i64 %coder)
  br i1 %coded, label %stored, label %no
number:
{_NUMBER}"""

_ROWS = _row_text("plain_row", "", _NUMBER).replace(") {", ") alwaysinline {", 1) + _row_text(
    "typed_row", ", i64 %mask, i64 %texts, i64 %coder", _TEXT_OR_NUMBER
)

_API = """
@PyTuple_Type = external global i8
@PyList_Type = external global i8
@PyLong_Type = external global i8
@PyUnicode_Type = external global i8
@_Py_NoneStruct = external global i8
@_Py_TrueStruct = external global i8
@_Py_FalseStruct = external global i8
declare i64 @PyLong_AsLongLong(ptr)
declare i64 @PyLong_AsLongLongAndOverflow(ptr, ptr)
declare i64 @PyTuple_Size(ptr)
declare ptr @PyTuple_GetItem(ptr, i64)
declare i64 @PyList_Size(ptr)
declare ptr @PyList_GetItem(ptr, i64)
declare void @Py_IncRef(ptr)
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)
declare i32 @PyUnicode_Compare(ptr, ptr)
declare ptr @PyUnicode_AsUTF8AndSize(ptr, ptr)
declare void @PyErr_Clear()

define internal i1 @is_a(ptr %object, ptr %type) alwaysinline {
  %place = getelementptr i64, ptr %object, i64 1
  %own = load ptr, ptr %place
  %same = icmp eq ptr %own, %type
  ret i1 %same
}

define internal i1 @same_name(ptr %name, ptr %own) alwaysinline {
entry:
  %identical = icmp eq ptr %name, %own
  br i1 %identical, label %yes, label %texts
texts:
  %first = call i1 @is_a(ptr %name, ptr @PyUnicode_Type)
  %second = call i1 @is_a(ptr %own, ptr @PyUnicode_Type)
  %both = and i1 %first, %second
  br i1 %both, label %compare, label %no
compare:
  %order = call i32 @PyUnicode_Compare(ptr %name, ptr %own)
  %equal = icmp eq i32 %order, 0
  ret i1 %equal
yes:
  ret i1 true
no:
  ret i1 false
}

define internal i1 @plain(ptr %object, ptr %out) alwaysinline {
entry:
  %lost = alloca i32
  store i32 0, ptr %lost
  %is = call i1 @is_a(ptr %object, ptr @PyLong_Type)
  br i1 %is, label %read, label %no
read:
  %value = call i64 @PyLong_AsLongLongAndOverflow(ptr %object, ptr %lost)
  store i64 %value, ptr %out
  %flag = load i32, ptr %lost
  %fits = icmp eq i32 %flag, 0
  %below = icmp slt i64 %value, PLAIN
  %above = icmp sgt i64 %value, -PLAIN
  %within = and i1 %below, %above
  %good = and i1 %within, %fits
  ret i1 %good
no:
  ret i1 false
}

define internal i1 @text(ptr %object, ptr %out, i64 %texts, i64 %coder) alwaysinline {
entry:
  %size = alloca i64
  %is = call i1 @is_a(ptr %object, ptr @PyUnicode_Type)
  br i1 %is, label %read, label %no
read:
  %bytes = call ptr @PyUnicode_AsUTF8AndSize(ptr %object, ptr %size)
  %failed = icmp eq ptr %bytes, null
  br i1 %failed, label %clear, label %look
look:
  %function = inttoptr i64 %coder to ptr
  %address = ptrtoint ptr %bytes to i64
  %length = load i64, ptr %size
  %number = call i64 %function(i64 %texts, i64 %address, i64 %length)
  %code = add i64 %number, PLAIN
  store i64 %code, ptr %out
  %found = icmp sge i64 %number, 0
  ret i1 %found
clear:
  call void @PyErr_Clear()
  br label %no
no:
  ret i1 false
}
""".replace("PLAIN", str(PLAIN))

_PARSE = """
define ptr @parse(ptr %self, ptr %arguments, i64 %given) {
entry:
  %row = alloca i64, i64 64
  %list = load ptr, ptr %arguments
  %place1 = getelementptr ptr, ptr %arguments, i64 1
  %object1 = load ptr, ptr %place1
  %arity = call i64 @PyLong_AsLongLong(ptr %object1)
  %place2 = getelementptr ptr, ptr %arguments, i64 2
  %object2 = load ptr, ptr %place2
  %address = call i64 @PyLong_AsLongLong(ptr %object2)
  %columns = inttoptr i64 %address to ptr
  %is = call i1 @is_a(ptr %list, ptr @PyList_Type)
  br i1 %is, label %sized, label %no
sized:
  %size = call i64 @PyList_Size(ptr %list)
  br label %head
head:
  %i = phi i64 [ 0, %sized ], [ %next, %written ]
  %more = icmp slt i64 %i, %size
  br i1 %more, label %item, label %yes
item:
  %object = call ptr @PyList_GetItem(ptr %list, i64 %i)
  %good = call i1 @plain_row(ptr %object, i64 %arity, ptr %row)
  br i1 %good, label %write, label %no
write:
  %j = phi i64 [ 0, %item ], [ %after, %write ]
  %from = getelementptr i64, ptr %row, i64 %j
  %value = load i64, ptr %from
  %which = getelementptr ptr, ptr %columns, i64 %j
  %column = load ptr, ptr %which
  %to = getelementptr i64, ptr %column, i64 %i
  store i64 %value, ptr %to
  %after = add i64 %j, 1
  %left = icmp slt i64 %after, %arity
  br i1 %left, label %write, label %written
written:
  %next = add i64 %i, 1
  br label %head
yes:
  call void @Py_IncRef(ptr @_Py_TrueStruct)
  ret ptr @_Py_TrueStruct
no:
  call void @Py_IncRef(ptr @_Py_FalseStruct)
  ret ptr @_Py_FalseStruct
}
"""

MOST_COLUMNS = 62
LINK = 5
"""Where the relations begin in the list that `update` is bound to: a name and a mask for each."""

UPDATE = "update"
"""The function that takes the updates of all relations."""


def parse_module() -> str:
    """LLVM of `parse(list, arity, addresses)`: whether all rows were tuples of plain integers."""
    return _API + _ROWS + _PARSE


def single_text(name: str, arity: int, functions: Sequence[str]) -> str:
    """LLVM of a function of a row and a multiplicity that runs the triggers of a relation.

    It returns None, True if a number left 64 bits and all was taken back, or False if the row is
    left to Python.
    """
    lines = [
        f"define ptr @{name}(ptr %self, ptr %arguments, i64 %given) {{",
        "entry:",
        f"  %row = alloca i64, i64 {max(arity, 1)}",
        "  %count = alloca i64",
        "  %tuple = load ptr, ptr %arguments",
        f"  %fits = call i1 @plain_row(ptr %tuple, i64 {arity}, ptr %row)",
        "  br i1 %fits, label %counted, label %no",
        "counted:",
        "  %place1 = getelementptr ptr, ptr %arguments, i64 1",
        "  %object1 = load ptr, ptr %place1",
        "  %whole = call i1 @plain(ptr %object1, ptr %count)",
        "  br i1 %whole, label %run, label %no",
        "run:",
        "  %state = call i64 @PyLong_AsLongLong(ptr %self)",
        "  %n = load i64, ptr %count",
    ]
    lines += _trigger_calls("", arity, functions)
    lines += [
        "  br i1 %good, label %done, label %back",
        *_undo_calls("", arity, functions),
        *_return_lines("done", "_Py_NoneStruct"),
        *_return_lines("lost", "_Py_TrueStruct"),
        *_return_lines("no", "_Py_FalseStruct"),
        "}",
    ]
    return "\n".join(lines)


def update_text(relations: Sequence[tuple[int, Sequence[str]]]) -> str:
    """LLVM of `update(relation, row, multiplicity=1)` over all relations of a query: for each, its
    arity and the functions of its triggers.

    It is bound to a list: the address of the state, what takes all other calls, what takes those
    that were taken back since a number left 64 bits, the addresses of the dictionary of texts and
    of the function that codes one, then for each relation its name and a mask: which columns are
    texts; the others are integers. Other names, and everything while the address of the state is
    0, are left to Python.
    """
    widest = max([1, *(arity for arity, _ in relations)])
    lines = [
        f"define ptr @{UPDATE}(ptr %self, ptr %arguments, i64 %given, ptr %keywords) {{",
        "entry:",
        f"  %row = alloca i64, i64 {widest}",
        "  %count = alloca i64",
        "  store i64 1, ptr %count",
        "  %plainly = icmp eq ptr %keywords, null",
        "  br i1 %plainly, label %sized, label %python",
        "sized:",
        "  switch i64 %given, label %python [ i64 2, label %placed i64 3, label %counted ]",
        "counted:",
        "  %place2 = getelementptr ptr, ptr %arguments, i64 2",
        "  %object2 = load ptr, ptr %place2",
        "  %whole = call i1 @plain(ptr %object2, ptr %count)",
        "  br i1 %whole, label %placed, label %python",
        "placed:",
        "  %object0 = call ptr @PyList_GetItem(ptr %self, i64 0)",
        "  %state = call i64 @PyLong_AsLongLong(ptr %object0)",
        "  %bound = icmp ne i64 %state, 0",
        "  %name = load ptr, ptr %arguments",
        "  %place1 = getelementptr ptr, ptr %arguments, i64 1",
        "  %tuple = load ptr, ptr %place1",
        "  %n = load i64, ptr %count",
        "  br i1 %bound, label %try0, label %python",
    ]
    for number, (arity, functions) in enumerate(relations):
        mask_place = LINK + 2 * number + 1
        other = f"try{number + 1}" if number + 1 < len(relations) else "python"
        lines += [
            f"try{number}:",
            f"  %own{number} = call ptr @PyList_GetItem(ptr %self, i64 {LINK + 2 * number})",
            f"  %same{number} = call i1 @same_name(ptr %name, ptr %own{number})",
            f"  br i1 %same{number}, label %mask{number}, label %{other}",
            f"mask{number}:",
            f"  %object{number}m = call ptr @PyList_GetItem(ptr %self, i64 {mask_place})",
            f"  %bits{number} = call i64 @PyLong_AsLongLong(ptr %object{number}m)",
            f"  %texts{number} = icmp ne i64 %bits{number}, 0",
            f"  br i1 %texts{number}, label %words{number}, label %read{number}",
            f"words{number}:",
            f"  %object{number}t = call ptr @PyList_GetItem(ptr %self, i64 3)",
            f"  %dictionary{number} = call i64 @PyLong_AsLongLong(ptr %object{number}t)",
            f"  %object{number}c = call ptr @PyList_GetItem(ptr %self, i64 4)",
            f"  %coder{number} = call i64 @PyLong_AsLongLong(ptr %object{number}c)",
            f"  %typed{number} = call i1 @typed_row(ptr %tuple, i64 {arity}, ptr %row, "
            f"i64 %bits{number}, i64 %dictionary{number}, i64 %coder{number})",
            f"  br i1 %typed{number}, label %run{number}, label %python",
            f"read{number}:",
            f"  %fits{number} = call i1 @plain_row(ptr %tuple, i64 {arity}, ptr %row)",
            f"  br i1 %fits{number}, label %run{number}, label %python",
            f"run{number}:",
        ]
        lines += _trigger_calls(str(number), arity, functions)
        lines.append(f"  br i1 %good{number}, label %done, label %back{number}")
        lines += _undo_calls(str(number), arity, functions)
    lines += [
        "done:",
        "  %words = inttoptr i64 %state to ptr",
        f"  %counter = getelementptr i64, ptr %words, i64 {UPDATES}",
        "  %before = load i64, ptr %counter",
        "  %after = add i64 %before, 1",
        "  store i64 %after, ptr %counter",
        "  call void @Py_IncRef(ptr @_Py_NoneStruct)",
        "  ret ptr @_Py_NoneStruct",
        *_list_call("lost", 2),
        *_list_call("python", 1),
        "}",
    ]
    return "\n".join(lines)


def _trigger_calls(mark: str, arity: int, functions: Sequence[str]) -> list[str]:
    """The triggers of a relation on the values in %row, %n times; %good tells if all went well."""
    lines = []
    for i in range(arity):
        lines += [
            f"  %p{mark}_{i} = getelementptr i64, ptr %row, i64 {i}",
            f"  %k{mark}_{i} = load i64, ptr %p{mark}_{i}",
        ]
    keys = "".join(f"i64 %k{mark}_{i}, " for i in range(arity))
    for which, function in enumerate(functions):
        lines.append(f"  %lost{mark}_{which} = call i64 @{function}(i64 %state, {keys}i64 %n)")
    return [*lines, f"  %good{mark} = icmp eq i64 %lost{mark}_{len(functions) - 1}, 0"]


def _undo_calls(mark: str, arity: int, functions: Sequence[str]) -> list[str]:
    """The same triggers %n times less, before anyone else sees the state: words wrap."""
    keys = "".join(f"i64 %k{mark}_{i}, " for i in range(arity))
    lines = [f"back{mark}:", f"  %less{mark} = sub i64 0, %n"]
    for which, function in enumerate(functions):
        # As a call, so that the same trigger is still merged in where it runs all the time.
        call = f"call i64 @{function}(i64 %state, {keys}i64 %less{mark}) noinline cold"
        lines.append(f"  %undone{mark}_{which} = {call}")
    return [
        *lines,
        f"  %flag{mark} = inttoptr i64 %state to ptr",
        f"  store i64 0, ptr %flag{mark}",
        "  br label %lost",
    ]


def _list_call(label: str, place: int) -> list[str]:
    """The same call, of a function in the list."""
    passed = "ptr %arguments, i64 %given, ptr %keywords"
    return [
        f"{label}:",
        f"  %{label}f = call ptr @PyList_GetItem(ptr %self, i64 {place})",
        f"  %{label}r = call ptr @PyObject_Vectorcall(ptr %{label}f, {passed})",
        f"  ret ptr %{label}r",
    ]


def _return_lines(label: str, constant: str) -> list[str]:
    return [f"{label}:", f"  call void @Py_IncRef(ptr @{constant})", f"  ret ptr @{constant}"]


def api_text() -> str:
    """The declarations that `single_text` needs."""
    return _API + _ROWS


def available() -> bool:
    """Whether objects lie in memory as this module reads them."""
    if sys.implementation.name != "cpython" or not getattr(sys, "_is_gil_enabled", lambda: True)():
        return False
    return ctypes.c_void_p.from_address(id(()) + 8).value == id(tuple)
