"""The scalar functions that views may use, with Spark SQL's type rules.

`FUNCTIONS` is the whole list; `aggregates` has those of groups. What is not deterministic is known
by name, so that it can be refused with the right reason.
"""

from collections.abc import Sequence

from viewkeep.errors import QueryError, did_you_mean
from viewkeep.query.types.array_functions import array_function_types
from viewkeep.query.types.data_types import (
    ARRAY,
    BIGINT,
    BOOLEAN,
    DATE,
    DECIMAL,
    DOUBLE,
    FLOAT,
    INT,
    INTEGRAL,
    STRING,
    TIMESTAMP,
    VOID,
    Type,
    parse_type,
)
from viewkeep.query.types.internal_functions import (
    COMPARABLE,
    ENTRY,
    FIELD,
    ITEM,
    SINGLE,
    TRIED,
    TRY_CAST,
)
from viewkeep.query.types.rules import (
    arithmetic_type,
    bounded_decimal,
    common_type,
    digits,
    is_castable,
    is_decimal,
    is_numeric,
)
from viewkeep.query.types.signatures import (
    FunctionSignature,
    Rule,
    TypedValue,
    case_results,
    clash,
    fitting_type,
    of_numbers,
    of_same,
    of_types,
    only_by_spark,
)
from viewkeep.query.types.text_functions import text_function_types


def _arithmetic_rule(operator: str) -> Rule:
    def rule(arguments: Sequence[TypedValue]) -> Type:
        first, second = arguments
        if operator in ("+", "-") and first.type == DATE and second.type in INTEGRAL[:3]:
            return DATE
        left, right = _operand_type(first, second), _operand_type(second, first)
        result = arithmetic_type(operator, left, right)
        if result is None:
            raise clash(f'"{operator}"', arguments, "both sides must be numbers")
        return result

    return rule


def _operand_type(argument: TypedValue, operand_beside: TypedValue) -> Type:
    """An integer literal beside a decimal takes only the digits it has, as in Spark."""
    if (
        is_decimal(operand_beside.type)
        and argument.type in INTEGRAL
        and isinstance(argument.value, int)
    ):
        return DECIMAL(len(str(abs(argument.value))), 0)
    return argument.type


def _bits_rule(name: str) -> Rule:
    """That of operators of bits: of whole numbers only."""

    def rule(arguments: Sequence[TypedValue]) -> Type:
        if any(each.type not in (*INTEGRAL, VOID) for each in arguments):
            raise clash(f'"{name}"', arguments, "the arguments must be whole numbers")
        return fitting_type(name, arguments)

    return rule


def _tried_rule(name: str) -> Rule:
    """That of the operator, of numbers only."""

    def rule(arguments: Sequence[TypedValue]) -> Type:
        if any(not is_numeric(each.type) and each.type != VOID for each in arguments):
            raise only_by_spark(name, "what is no number")
        if name == "try_mod" and any(is_decimal(each.type) for each in arguments):
            raise only_by_spark(name, "decimals")  # some of its errors are not tried
        return _arithmetic_rule(TRIED[name])(arguments)

    return rule


def _try_cast_type(arguments: Sequence[TypedValue]) -> Type:
    if not isinstance(arguments[1].value, str):
        raise clash("try_cast", arguments, "the type must be the text of one")
    value, target = arguments[0].type, parse_type(arguments[1].value)
    if not is_castable(value, target):
        raise QueryError(f"cannot cast {value} to {target}")
    return target


def _comparison_rule(name: str) -> Rule:
    def rule(arguments: Sequence[TypedValue]) -> Type:
        fitting_type(name, arguments)
        return BOOLEAN

    return rule


def _case_type(arguments: Sequence[TypedValue]) -> Type:
    """Conditions and results alternate; the odd one at the end is ELSE."""
    for condition in arguments[:-1:2]:
        if condition.type not in (BOOLEAN, VOID):
            raise clash("case", [condition], "a condition must be boolean")
    return fitting_type("case", case_results(arguments))


def _null_if_type(arguments: Sequence[TypedValue]) -> Type:
    """The type of the value, whatever it is compared with."""
    common = fitting_type("nullif", arguments)
    return common if arguments[0].type == VOID else arguments[0].type


def _round_type(arguments: Sequence[TypedValue]) -> Type:
    if len(arguments) > 1 and not isinstance(arguments[1].value, int):
        raise clash("round", arguments, "the number of digits must be an integer literal")
    value = arguments[0].type
    places = arguments[1].value if len(arguments) > 1 else 0
    if not is_decimal(value) or not isinstance(places, int):
        return of_numbers("round", lambda type_: type_)(arguments)
    precision, scale = digits(value)
    digits_before_point = precision - scale + 1
    if places < 0:
        return bounded_decimal(max(digits_before_point, 1 - places), 0)
    return bounded_decimal(digits_before_point + min(scale, places), min(scale, places))


def _div_type(arguments: Sequence[TypedValue]) -> Type:
    if any(each.type in (FLOAT, DOUBLE) for each in arguments):
        raise clash("div", arguments, "the arguments must be exact numbers")
    return of_numbers("div", lambda _: BIGINT)(arguments)


def _whole_number_type(type_: Type) -> Type:
    if not is_decimal(type_):
        return BIGINT
    precision, scale = digits(type_)
    return bounded_decimal(precision - scale + 1, 0)


def _timestampadd_type(arguments: Sequence[TypedValue]) -> Type:
    of_types("timestampadd", TIMESTAMP, (STRING,), INTEGRAL, (TIMESTAMP,))(arguments)
    return TIMESTAMP


def _date_trunc_type(arguments: Sequence[TypedValue]) -> Type:
    of_types("date_trunc", TIMESTAMP, (STRING,), (TIMESTAMP,))(arguments)
    if arguments[0].value not in UNITS_OF_A_DAY:
        raise only_by_spark("date_trunc", "this unit")
    return TIMESTAMP


UNITS_OF_A_DAY = ("hour", "minute", "second", "millisecond", "microsecond")
"""The units in which `date_trunc` cuts the time of a day."""


def _field_type(arguments: Sequence[TypedValue]) -> Type:
    struct, name, place = arguments[0].type, arguments[1].value, arguments[2].value
    if struct.name != "struct" or not isinstance(place, int) or place >= len(struct.parts):
        raise QueryError(f"{struct} has no part {name!r}")
    return struct.parts[place].type


def _item_type(arguments: Sequence[TypedValue]) -> Type:
    array, place = (argument.type for argument in arguments)
    if array.name != "array" or place not in INTEGRAL:
        raise QueryError(f"an element of {array} cannot be found by {place}")
    return array.parts[0].type


def _entry_type(arguments: Sequence[TypedValue]) -> Type:
    map_, key = (argument.type for argument in arguments)
    if map_.name != "map" or common_type(map_.parts[0].type, key) != map_.parts[0].type:
        raise QueryError(f"a value of {map_} cannot be found by {key}")
    return map_.parts[1].type


def _array_type(arguments: Sequence[TypedValue]) -> Type:
    return ARRAY(fitting_type("array", arguments))


def _sequence_type(arguments: Sequence[TypedValue]) -> Type:
    common = fitting_type("sequence", arguments)
    if common != DATE and common not in INTEGRAL:
        raise clash("sequence", arguments, "the ends must be whole numbers or dates")
    return ARRAY(common)


def _nested_function_types() -> list[FunctionSignature]:
    return [
        FunctionSignature(FIELD, _field_type, 3, 3, "always"),
        FunctionSignature(ITEM, _item_type, 2, 2, "always"),
        FunctionSignature(ENTRY, _entry_type, 2, 2, "always"),
        FunctionSignature("array", _array_type, 1, None, "never"),
        FunctionSignature("sequence", _sequence_type, 2, 2),
    ]


_TEXT, _DAY = (STRING,), (DATE, TIMESTAMP)


def _functions_by_name() -> dict[str, FunctionSignature]:
    functions = [
        *(FunctionSignature(name, _arithmetic_rule(name), 2, 2) for name in ("+", "-", "*")),
        *(FunctionSignature(name, _arithmetic_rule(name), 2, 2, "always") for name in ("/", "%")),
        *(
            FunctionSignature(n, _comparison_rule(f'"{n}"'), 2, 2)
            for n in ("=", "<>", "<", "<=", ">", ">=")
        ),
        FunctionSignature("<=>", _comparison_rule('"<=>"'), 2, 2, "never"),
        *(
            FunctionSignature(name, of_types(name, BOOLEAN, (BOOLEAN,)), 2, 2)
            for name in ("and", "or")
        ),
        FunctionSignature("not", of_types("not", BOOLEAN, (BOOLEAN,)), 1, 1),
        FunctionSignature("negate", of_numbers("negate", lambda type_: type_), 1, 1),
        *(FunctionSignature(name, _bits_rule(name), 2, 2) for name in ("&", "|", "^")),
        FunctionSignature("~", _bits_rule("~"), 1, 1),
        *(FunctionSignature(n, lambda _: BOOLEAN, 1, 1, "never") for n in ("isnull", "isnotnull")),
        FunctionSignature(COMPARABLE, lambda _: STRING, 1, 1),
        *(FunctionSignature(name, _tried_rule(name), 2, 2, "always") for name in TRIED),
        FunctionSignature(TRY_CAST, _try_cast_type, 2, 2, "always"),
        FunctionSignature(SINGLE, lambda arguments: arguments[0].type, 2, 2),
        FunctionSignature("in", _comparison_rule("in"), 2, None),
        FunctionSignature("case", _case_type, 2, None, "results"),
        FunctionSignature("coalesce", of_same("coalesce"), 1, None, "all"),
        FunctionSignature("nullif", _null_if_type, 2, 2, "always"),
        *(FunctionSignature(name, of_same(name), 2, None, "all") for name in ("greatest", "least")),
        *text_function_types(),
        *_number_function_types(),
        *_date_function_types(),
        *_nested_function_types(),
        *array_function_types(),
    ]
    return {function.name: function for function in functions}


def _number_function_types() -> list[FunctionSignature]:
    return [
        FunctionSignature("abs", of_numbers("abs", lambda type_: type_), 1, 1),
        FunctionSignature("round", _round_type, 1, 2),
        *(
            FunctionSignature(name, of_numbers(name, _whole_number_type), 1, 1)
            for name in ("floor", "ceil")
        ),
        *(
            FunctionSignature(n, of_numbers(n, lambda _: DOUBLE), 1, 1, "always")
            for n in ("sqrt", "ln", "exp")
        ),
        FunctionSignature("power", of_numbers("power", lambda _: DOUBLE), 2, 2),
        FunctionSignature("sign", of_numbers("sign", lambda _: DOUBLE), 1, 1),
        FunctionSignature("div", _div_type, 2, 2, "always"),
    ]


def _date_function_types() -> list[FunctionSignature]:
    parts = ("year", "quarter", "month", "day", "dayofweek", "dayofyear", "weekofyear")
    times = ("hour", "minute", "second")
    units, days = ("seconds", "millis", "micros"), INTEGRAL[:3]
    return [
        *(FunctionSignature(name, of_types(name, INT, _DAY), 1, 1) for name in parts),
        *(FunctionSignature(name, of_types(name, INT, (TIMESTAMP,)), 1, 1) for name in times),
        *(
            FunctionSignature(n, of_types(n, DATE, _DAY, days), 2, 2)
            for n in ("date_add", "date_sub")
        ),
        FunctionSignature("datediff", of_types("datediff", INT, _DAY), 2, 2),
        FunctionSignature("add_months", of_types("add_months", DATE, _DAY, days), 2, 2),
        FunctionSignature("last_day", of_types("last_day", DATE, _DAY), 1, 1),
        FunctionSignature(
            "timestampadd", _timestampadd_type, 3, 3, takes=(_TEXT, INTEGRAL, (TIMESTAMP,))
        ),
        FunctionSignature("date_trunc", _date_trunc_type, 2, 2, takes=(_TEXT, (TIMESTAMP,))),
        *(
            FunctionSignature(name, of_types(name, STRING, _DAY), 1, 1)
            for name in ("dayname", "monthname")
        ),
        FunctionSignature("make_date", of_types("make_date", DATE, days), 3, 3),
        *(
            FunctionSignature(f"unix_{u}", of_types(f"unix_{u}", BIGINT, (TIMESTAMP,)), 1, 1)
            for u in units
        ),
        *(
            FunctionSignature(
                f"timestamp_{unit}", of_types(f"timestamp_{unit}", TIMESTAMP, INTEGRAL), 1, 1
            )
            for unit in units
        ),
    ]


TIME_FUNCTIONS = frozenset(each.name for each in _date_function_types())
"""The functions of days and times; what has no time zone is a time in UTC to them."""

FUNCTIONS = _functions_by_name()
"""Every scalar function and operator, by the name that `Call.function` uses."""

SYNONYMS = {
    "array_size": "size",
    "cardinality": "size",
    "ceiling": "ceil",
    "char_length": "length",
    "character_length": "length",
    "dateadd": "date_add",
    "date_diff": "datediff",
    "dayofmonth": "day",
    "ifnull": "coalesce",
    "lcase": "lower",
    "len": "length",
    "mod": "%",
    "nvl": "coalesce",
    "pow": "power",
    "regexp": "rlike",
    "regexp_like": "rlike",
    "sha": "sha1",
    "signum": "sign",
    "substr": "substring",
    "ucase": "upper",
}
"""Other names of the same functions."""

_NON_DETERMINISTIC = (
    "curdate current_catalog current_database current_date current_path current_schema "
    "current_time current_timestamp current_timezone current_user input_file_block_length "
    "input_file_block_start input_file_name java_method localtime localtimestamp "
    "monotonically_increasing_id now rand randn random randstr reflect session_user shuffle "
    "spark_partition_id try_reflect uniform user uuid version"
)
NON_DETERMINISTIC = frozenset(_NON_DETERMINISTIC.split())
"""Functions whose result may change between two runs on the same data."""

_BARE = (
    "current_date current_time current_timestamp current_user localtime localtimestamp "
    "session_user user"
)
BARE_FUNCTIONS = frozenset(_BARE.split())
"""Those that Spark also calls without brackets, where no column has the name."""


def is_deterministic(name: str, arguments: int) -> bool:
    """Whether a function, by its lower-case name, always gives the same result for the same data.

    >>> is_deterministic("unix_timestamp", 0), is_deterministic("unix_timestamp", 1)
    (False, True)
    """
    return name not in NON_DETERMINISTIC and (name != "unix_timestamp" or arguments > 0)


def find_function(name: str) -> FunctionSignature:
    """The function with this name or synonym, in any case.

    >>> find_function("SUBSTR").name
    'substring'
    """
    lower = name.lower()
    function = FUNCTIONS.get(SYNONYMS.get(lower, lower))
    if function is None:
        names = [names for names in (*FUNCTIONS, *SYNONYMS) if names.isidentifier()]
        raise QueryError(f"unknown function {name}(){did_you_mean(lower, names)}")
    return function
