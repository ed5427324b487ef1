"""From generated text to LLVM: Python's syntax over 64-bit numbers and bare memory.

The compiled engine writes one text per trigger program. Its functions know integers, floats (names
that start with `f_`) and addresses: `p[3]` is the fourth 64-bit word at address `p`, and
`float_at(p, 3)` the same word as a float. Everything else is what it is in Python: assignments,
`if`, `while`, `for` over a `range`, calls. Numba, which compiles all of Python, takes about 0.2 s
for ten lines of such text, so a minute for the larger programs, which have thousands of lines;
translated straight to LLVM (by llvmlite, which is a part of Numba) they take 2 to 3 s.

`add`, `subtract` and `multiply` are exact: where the bits do not suffice, they set a mark in the
word OVERFLOW of the state `s`. `+`, `-` and `*` wrap, and are for addresses and hashes. Names that
start with `w2_`, `w3_`, ... are integers of so many words (`llvm/wide.py`).

>>> module = Module((Function("twice", "n", ["    return n + n"], public=True),))
>>> print(translate(module).partition("define ")[2][:21])
i64 @twice(i64 %n) no
"""

import ast
from collections.abc import Mapping

from viewkeep.engine.compiled.function import Function, Module
from viewkeep.engine.compiled.llvm.share_blocks import share
from viewkeep.engine.compiled.llvm.wide import is_wide, is_wide_function, wide_text, wide_width

INTEGER, FLOAT = "i64", "double"

OVERFLOW = 0
"""The word of the state that tells whether a sum or a product left its bits."""

TOO_LARGE, OUTSIDE, TOO_WIDE = 1, 2, 4
"""Its marks: a number left 64 bits, a float its window, an integer of several words those."""

_INTRINSICS = """\
declare { i64, i1 } @llvm.sadd.with.overflow.i64(i64, i64)
declare { i64, i1 } @llvm.ssub.with.overflow.i64(i64, i64)
declare { i64, i1 } @llvm.smul.with.overflow.i64(i64, i64)
declare void @llvm.prefetch.p0(ptr, i32, i32, i32)
declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)
declare i1 @llvm.expect.i1(i1, i1)
declare double @pow(double, double)
declare noalias ptr @malloc(i64)
declare noalias ptr @aligned_alloc(i64, i64)
declare i32 @madvise(ptr, i64, i32)
declare void @free(ptr)
declare i32 @memcmp(ptr, ptr, i64)
"""

_EXACT = {"add": "sadd", "subtract": "ssub", "multiply": "smul"}
_OPERATORS = {
    ast.Add: ("add", "fadd"),
    ast.Sub: ("sub", "fsub"),
    ast.Mult: ("mul", "fmul"),
    ast.BitAnd: ("and", ""),
    ast.BitOr: ("or", ""),
    ast.BitXor: ("xor", ""),
    ast.LShift: ("shl", ""),
    ast.RShift: ("lshr", ""),
    ast.FloorDiv: ("sdiv", "fdiv"),
}
_COMPARISONS = {
    ast.Eq: ("eq", "oeq"),
    ast.NotEq: ("ne", "une"),
    ast.Lt: ("slt", "olt"),
    ast.LtE: ("sle", "ole"),
    ast.Gt: ("sgt", "ogt"),
    ast.GtE: ("sge", "oge"),
}

Value = tuple[str, str]
"""A piece of LLVM that names a value, and its type."""


def translate(module: Module) -> str:
    """The LLVM of a module."""
    whole = {each.name for each in module.functions if module.is_whole(each)}
    public = {each.name for each in module.functions if each.public}
    inlined = {each.name for each in module.functions if each.inline}
    outlined = {each.name: each.outlined for each in module.functions if each.outlined}
    parsed = [
        _parsed_function(each, {} if each.name in whole else outlined) for each in module.functions
    ]
    parts = [_INTRINSICS, wide_text("\n".join(each.text for each in module.functions))]
    for node in share(parsed, whole):
        linkage = "" if node.name in public else "internal "
        hint = " alwaysinline" if node.name in inlined else " noinline"
        parts.append(_FunctionTranslator(node, linkage, hint).text)
    return "\n".join(parts)


def _parsed_function(function: Function, outlined: Mapping[str, str]) -> ast.FunctionDef:
    """A function as a tree, with other functions called in place of some."""
    (node,) = ast.parse(function.text).body
    assert isinstance(node, ast.FunctionDef)
    for each in ast.walk(node) if outlined else ():
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Name):
            each.func.id = outlined.get(each.func.id, each.func.id)
    return node


def _llvm_type(name: str) -> str:
    if name.startswith("f_"):
        return FLOAT
    return f"i{64 * wide_width(name)}" if is_wide(name) else INTEGER


class _FunctionTranslator:
    """One function on its way to LLVM: lines so far, and where loops continue and end."""

    def __init__(self, node: ast.FunctionDef, linkage: str, hint: str) -> None:
        self._lines: list[str] = []
        self._number = 0
        self._loops: list[tuple[str, str]] = []
        self._terminated = False
        names = [argument.arg for argument in node.args.args]
        for name in names:
            self._emit_line(f"store {_llvm_type(name)} %{name}, ptr %{name}.at")
        self._emit_body(node.body)
        if not self._terminated:
            self._emit_line("ret i64 0")
        assigned = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and _is_assigned(n)}
        allocated = [f"  %{n}.at = alloca {_llvm_type(n)}" for n in sorted(assigned | set(names))]
        header = ", ".join(f"{_llvm_type(name)} %{name}" for name in names)
        self.text = "\n".join(
            [
                f"define {linkage}i64 @{node.name}({header}){hint} {{",
                "entry:",
                *allocated,
                *self._lines,
                "}",
            ]
        )

    # --- lines ------------------------------------------------------------------------------------

    def _emit_line(self, line: str) -> None:
        if not self._terminated:  # what follows a return is never reached
            self._lines.append(f"  {line}")

    def _emit_value(self, instruction: str) -> str:
        self._number += 1
        self._emit_line(f"%t{self._number} = {instruction}")
        return f"%t{self._number}"

    def _new_label(self) -> str:
        self._number += 1
        return f"b{self._number}"

    def _start_block(self, label: str) -> None:
        self._emit_jump(label)
        self._lines.append(f"{label}:")
        self._terminated = False

    def _emit_jump(self, label: str) -> None:
        self._emit_line(f"br label %{label}")
        self._terminated = True

    # --- statements -------------------------------------------------------------------------------

    def _emit_body(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            self._emit_statement(statement)

    def _emit_statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Assign(targets=[target], value=value):
                self._emit_store(target, self._emit_expression(value))
            case ast.AugAssign(target=target, op=op, value=value):
                read = ast.BinOp(_load_of_target(target), op, value)
                self._emit_store(target, self._emit_expression(read))
            case ast.Expr(value=ast.Call() as call):
                self._emit_call(call)
            case ast.If(test=test, body=body, orelse=orelse):
                self._emit_if(test, body, orelse)
            case ast.While(test=test, body=body):
                self._emit_while(test, body, [])
            case ast.For(target=ast.Name() as name, iter=ast.Call(args=arguments), body=body):
                self._emit_for(name, arguments, body)
            case ast.Return(value=value):
                result = self._emit_expression(value)[0] if value is not None else "0"
                self._emit_line(f"ret i64 {result}")
                self._terminated = True
            case ast.Break():
                self._emit_jump(self._loops[-1][1])
            case ast.Continue():
                self._emit_jump(self._loops[-1][0])
            case ast.Pass():
                pass
            case _:
                raise NotImplementedError(ast.unparse(node))

    def _emit_store(self, target: ast.expr, value: Value) -> None:
        match target:
            case ast.Name(id=name):
                kind = _llvm_type(name)
                self._emit_line(f"store {kind} {self._extended(value, kind)}, ptr %{name}.at")
            case ast.Subscript():
                self._emit_line(f"store {value[1]} {value[0]}, ptr {self._emit_address(target)}")
            case _:
                raise NotImplementedError(ast.unparse(target))

    def _emit_if(self, test: ast.expr, body: list[ast.stmt], orelse: list[ast.stmt]) -> None:
        then, other, end = self._new_label(), self._new_label(), self._new_label()
        self._emit_condition(test, then, other)
        for label, statements in ((then, body), (other, orelse)):
            self._open_block(label)
            self._emit_body(statements)
            self._emit_jump(end)
        self._open_block(end)

    def _open_block(self, label: str) -> None:
        self._lines.append(f"{label}:")
        self._terminated = False

    def _emit_while(self, test: ast.expr, body: list[ast.stmt], after: list[ast.stmt]) -> None:
        head, inside, step, end = (self._new_label() for _ in range(4))
        self._start_block(head)
        self._emit_condition(test, inside, end)
        self._open_block(inside)
        self._loops.append((step, end))
        self._emit_body(body)
        self._loops.pop()
        self._start_block(step)
        self._emit_body(after)
        self._emit_jump(head)
        self._open_block(end)

    def _emit_for(self, name: ast.Name, arguments: list[ast.expr], body: list[ast.stmt]) -> None:
        start = arguments[0] if len(arguments) > 1 else ast.Constant(0)
        self._emit_store(name, self._emit_expression(start))
        counter = ast.Name(name.id, ast.Load())
        test = ast.Compare(counter, [ast.Lt()], [arguments[-1]])
        step = ast.AugAssign(ast.Name(name.id, ast.Store()), ast.Add(), ast.Constant(1))
        self._emit_while(test, body, [step])

    def _emit_condition(self, test: ast.expr, then: str, other: str) -> None:
        match test:
            case ast.BoolOp(op=ast.And(), values=[first, *rest]) if rest:
                between = self._new_label()
                self._emit_condition(first, between, other)
                self._open_block(between)
                self._emit_condition(_combined_expression(ast.And(), rest), then, other)
            case ast.BoolOp(op=ast.Or(), values=[first, *rest]) if rest:
                between = self._new_label()
                self._emit_condition(first, then, between)
                self._open_block(between)
                self._emit_condition(_combined_expression(ast.Or(), rest), then, other)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                self._emit_condition(operand, other, then)
            case _:
                self._emit_line(f"br i1 {self._emit_truth(test)}, label %{then}, label %{other}")
                self._terminated = True

    # --- expressions ------------------------------------------------------------------------------

    def _emit_truth(self, node: ast.expr) -> str:
        if isinstance(node, ast.Compare):
            return self._emit_comparison(node)
        value, kind = self._emit_expression(node)
        test, zero = ("fcmp une", "0.0") if kind == FLOAT else ("icmp ne", "0")
        return self._emit_value(f"{test} {kind} {value}, {zero}")

    def _emit_comparison(self, node: ast.Compare) -> str:
        left, kind = self._emit_expression(node.left)
        right = self._extended(self._emit_expression(node.comparators[0]), kind)
        integer, floating = _COMPARISONS[type(node.ops[0])]
        test = f"fcmp {floating}" if kind == FLOAT else f"icmp {integer}"
        return self._emit_value(f"{test} {kind} {left}, {right}")

    def _emit_expression(self, node: ast.expr) -> Value:
        match node:
            case ast.Constant(value=bool() | int() as number):
                return str(int(number)), INTEGER
            case ast.Constant(value=float() as number):
                return _float_text(number), FLOAT
            case ast.Name(id=name):
                return self._emit_value(f"load {_llvm_type(name)}, ptr %{name}.at"), _llvm_type(
                    name
                )
            case ast.Subscript():
                return self._emit_value(f"load i64, ptr {self._emit_address(node)}"), INTEGER
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=number)):
                return self._emit_expression(ast.Constant(-number))  # type: ignore[operator]
            case ast.BinOp(left=left, op=op, right=right):
                a, kind = self._emit_expression(left)
                b = self._extended(self._emit_expression(right), kind)
                name = _OPERATORS[type(op)][kind == FLOAT]
                return self._emit_value(f"{name} {kind} {a}, {b}"), kind
            case ast.Compare():
                return self._emit_value(f"zext i1 {self._emit_comparison(node)} to i64"), INTEGER
            case ast.Call():
                return self._emit_call(node)
            case _:
                raise NotImplementedError(ast.unparse(node))

    def _emit_address(self, node: ast.Subscript) -> str:
        return self._emit_pointer(self._emit_expression(node.value)[0], node.slice)

    def _emit_pointer(self, base: str, index: ast.expr) -> str:
        pointer = self._emit_value(f"inttoptr i64 {base} to ptr")
        if isinstance(index, ast.Constant) and index.value == 0:
            return pointer
        return self._emit_value(
            f"getelementptr i64, ptr {pointer}, i64 {self._emit_expression(index)[0]}"
        )

    def _emit_call(self, node: ast.Call) -> Value:
        assert isinstance(node.func, ast.Name)
        name, arguments = node.func.id, node.args
        if name in ("float_at", "set_float_at"):
            place = self._emit_pointer(self._emit_expression(arguments[0])[0], arguments[1])
            if name == "float_at":
                return self._emit_value(f"load double, ptr {place}"), FLOAT
            self._emit_line(f"store double {self._emit_expression(arguments[2])[0]}, ptr {place}")
            return "0", INTEGER
        if is_wide_function(name):
            return self._emit_wide(name, arguments)
        values = [self._emit_expression(argument) for argument in arguments]
        if name in _EXACT:
            return self._emit_exact(_EXACT[name], *values)
        operands = [value for value, _ in values]
        match name:
            case "byte_at" | "word_at":
                size = "i8" if name == "byte_at" else "i64"
                pointer = self._emit_value(f"inttoptr i64 {operands[0]} to ptr")
                loaded = self._emit_value(f"load {size}, ptr {pointer}, align 1")
                if size == "i64":
                    return loaded, INTEGER
                return self._emit_value(f"zext i8 {loaded} to i64"), INTEGER
            case "compare":
                first, second = (
                    self._emit_value(f"inttoptr i64 {each} to ptr") for each in operands[:2]
                )
                passed = f"ptr {first}, ptr {second}, i64 {operands[2]}"
                order = self._emit_value(f"call i32 @memcmp({passed})")
                return self._emit_value(f"sext i32 {order} to i64"), INTEGER
            case "float_of":
                return self._emit_value(f"bitcast i64 {operands[0]} to double"), FLOAT
            case "bits_of":
                return self._emit_value(f"bitcast double {operands[0]} to i64"), INTEGER
            case "real":
                return self._emit_value(f"sitofp i64 {operands[0]} to double"), FLOAT
            case "pow":
                return self._emit_value(
                    f"call double @pow(double {operands[0]}, double {operands[1]})"
                ), FLOAT
            case "prefetch":
                pointer = self._emit_value(f"inttoptr i64 {operands[0]} to ptr")
                self._emit_line(f"call void @llvm.prefetch.p0(ptr {pointer}, i32 1, i32 3, i32 1)")
                return "0", INTEGER
            case "allocate":
                pointer = self._emit_value(f"call ptr @malloc(i64 {operands[0]})")
                return self._emit_value(f"ptrtoint ptr {pointer} to i64"), INTEGER
            case "aligned":
                sizes = f"i64 {operands[0]}, i64 {operands[1]}"
                pointer = self._emit_value(f"call ptr @aligned_alloc({sizes})")
                return self._emit_value(f"ptrtoint ptr {pointer} to i64"), INTEGER
            case "advise":
                pointer = self._emit_value(f"inttoptr i64 {operands[0]} to ptr")
                self._emit_line(
                    f"call i32 @madvise(ptr {pointer}, i64 {operands[1]}, i32 {operands[2]})"
                )
                return "0", INTEGER
            case "release":
                pointer = self._emit_value(f"inttoptr i64 {operands[0]} to ptr")
                self._emit_line(f"call void @free(ptr {pointer})")
                return "0", INTEGER
            case "move":
                to, source = (
                    self._emit_value(f"inttoptr i64 {each} to ptr") for each in operands[:2]
                )
                words = f"ptr {to}, ptr {source}, i64 {operands[2]}, i1 false"
                self._emit_line(f"call void @llvm.memmove.p0.p0.i64({words})")
                return "0", INTEGER
            case _:
                passed = ", ".join(f"{kind} {value}" for value, kind in values)
                return self._emit_value(f"call i64 @{name}({passed})"), INTEGER

    def _emit_exact(self, operation: str, left: Value, right: Value) -> Value:
        kind = left[1]
        first, second = left[0], self._extended(right, kind)
        if kind != INTEGER and operation == "smul":
            state = self._emit_value("load i64, ptr %s.at")
            arguments = f"i64 {state}, {kind} {first}, {kind} {second}"
            return self._emit_value(f"call {kind} @multiply_{kind}({arguments})"), kind
        pair_type = f"{{ {kind}, i1 }}"
        name = f"@llvm.{operation}.with.overflow.{kind}"
        pair = self._emit_value(f"call {pair_type} {name}({kind} {first}, {kind} {second})")
        result = self._emit_value(f"extractvalue {pair_type} {pair}, 0")
        overflow = self._emit_value(f"extractvalue {pair_type} {pair}, 1")
        rare = self._emit_value(f"call i1 @llvm.expect.i1(i1 {overflow}, i1 false)")
        note, go_on = self._new_label(), self._new_label()
        self._emit_line(f"br i1 {rare}, label %{note}, label %{go_on}")
        self._open_block(note)
        place = self._emit_pointer(self._emit_value("load i64, ptr %s.at"), ast.Constant(OVERFLOW))
        mark = TOO_LARGE if kind == INTEGER else TOO_WIDE
        marks = self._emit_value(f"or i64 {self._emit_value(f'load i64, ptr {place}')}, {mark}")
        self._emit_line(f"store i64 {marks}, ptr {place}")
        self._emit_jump(go_on)
        self._open_block(go_on)
        return result, kind

    # --- integers of several words ----------------------------------------------------------------

    def _extended(self, value: Value, kind: str) -> str:
        """A value as one of a type that is at least as wide."""
        text, own = value
        if own in (kind, FLOAT) or text.lstrip("-").isdigit():
            return text
        return self._emit_value(f"sext {own} {text} to {kind}")

    def _emit_wide(self, name: str, arguments: list[ast.expr]) -> Value:
        """`wide2(n)`, `wide2_at(p, i)`, `set_wide2_at(p, i, w)` and `binary2(bits, e)`."""
        kind = f"i{64 * wide_width(name)}"
        if name.endswith("_at"):
            place = self._emit_pointer(self._emit_expression(arguments[0])[0], arguments[1])
            if not name.startswith("set"):
                return self._emit_value(f"load {kind}, ptr {place}, align 8"), kind
            value = self._extended(self._emit_expression(arguments[2]), kind)
            self._emit_line(f"store {kind} {value}, ptr {place}, align 8")
            return "0", INTEGER
        values = [self._emit_expression(argument) for argument in arguments]
        if name.startswith("wide"):
            return self._extended(values[0], kind), kind
        state = self._emit_value("load i64, ptr %s.at")
        passed = f"i64 {state}, i64 {values[0][0]}, i64 {values[1][0]}"
        return self._emit_value(f"call {kind} @binary_{kind}({passed})"), kind


def _is_assigned(name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Store)


def _load_of_target(target: ast.expr) -> ast.expr:
    match target:
        case ast.Name(id=name):
            return ast.Name(name, ast.Load())
        case ast.Subscript(value=value, slice=index):
            return ast.Subscript(value, index, ast.Load())
        case _:
            raise NotImplementedError(ast.unparse(target))


def _combined_expression(op: ast.boolop, values: list[ast.expr]) -> ast.expr:
    return values[0] if len(values) == 1 else ast.BoolOp(op, values)


def _float_text(number: float) -> str:
    """Floats as LLVM reads them without rounding: their bits."""
    import struct

    (bits,) = struct.unpack(">Q", struct.pack(">d", number))
    return f"0x{bits:016X}"
