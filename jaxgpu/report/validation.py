"""Validation of the stored JSON of a report, which may come from an untrusted source.

A check takes the name and the value of a field, and raises a ValueError with the reason if invalid.
"""

import base64
import json
from collections.abc import Callable
from typing import Any

from jaxgpu.inputs import arguments

type Check = Callable[[str, Any], None]

_MOST_DIGITS = 1000  # significant digits, far more than any number has


def check_record(record: Any) -> None:
    """Raise if the JSON of a report cannot be rendered.

    Raises:
        ValueError: a field is missing, or holds a value of another type.

    >>> check_record({"study": 3})
    Traceback (most recent call last):
    ValueError: study=3; it must be a string
    """
    _STORED_REPORT("", record)
    try:
        json.dumps(record, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"{arguments.format_value(error.object[error.start])} in a string; it must be valid "
            "UTF-8"
        ) from error


def _accept_any(name: str, value: Any) -> None:
    """Accept any value: it is shown as it is."""


def _check_text(name: str, value: Any) -> None:
    _require(name, value, isinstance(value, str), "a string")


def _check_number(name: str, value: Any) -> None:
    good = isinstance(value, int | float) and not isinstance(value, bool)
    try:
        _require(name, float(value) if good else value, good, "a number")
    except OverflowError:  # an integer above the largest float
        _require(name, value, False, "a number")


def _check_integer(name: str, value: Any) -> None:
    _require(name, value, isinstance(value, int) and not isinstance(value, bool), "a whole number")


def _check_digits(name: str, value: Any) -> None:
    _check_integer(name, value)
    _require(name, value, 1 <= value <= _MOST_DIGITS, f"a whole number from 1 to {_MOST_DIGITS}")


def _check_base64(name: str, value: Any) -> None:
    _check_text(name, value)
    try:
        base64.b64decode(value)
    except ValueError:
        _require(name, value, False, "a file in base64")


def _optional(check: Check) -> Check:
    return lambda name, value: None if value is None else check(name, value)


def _check_pair(name: str, value: Any) -> None:
    _require(name, value, isinstance(value, list) and len(value) == 2, "two numbers")
    _list_of(_check_number)(name, value)


def _list_of(check: Check) -> Check:
    def check_list(name: str, value: Any) -> None:
        _require(name, value, isinstance(value, list), "a list")
        for i, part in enumerate(value):
            check(f"{name}[{i}]", part)

    return check_list


def _dict_of(check: Check) -> Check:
    def check_values(name: str, value: Any) -> None:
        _require(name, value, isinstance(value, dict), "values by their names")
        for key, part in value.items():
            check(f"{name}[{key!r}]", part)

    return check_values


def _dict_with_fields(**checks: Check) -> Check:
    def check_fields(name: str, value: Any) -> None:
        _require(name or "the record", value, isinstance(value, dict), "values by their names")
        for field, check in checks.items():
            whole = f"{name}.{field}".lstrip(".")
            if field not in value:
                raise ValueError(f"{whole} is missing")
            check(whole, value[field])

    return check_fields


def _require(name: str, value: Any, good: bool, need: str) -> None:
    if not good:
        raise ValueError(f"{name}={arguments.format_value(value)}; it must be {need}")


_FIGURE = _dict_with_fields(
    caption=_check_text, mime=_check_text, data=_check_base64, numbers=_check_text
)
_TABLE = _dict_with_fields(
    caption=_check_text,
    columns=_list_of(_accept_any),
    rows=_list_of(_list_of(_accept_any)),
    digits=_check_digits,
)
_HEADLINE = _dict_with_fields(
    what=_check_text, value=_accept_any, beside=_check_text, digits=_check_digits
)
_REPORT = _dict_with_fields(
    title=_check_text,
    lead=_check_text,
    figures=_list_of(_FIGURE),
    tables=_list_of(_TABLE),
    findings=_list_of(_check_text),
    citations=_list_of(_check_text),
    timing=_dict_of(
        _dict_with_fields(compile=_check_number, run=_check_number, steps=_check_number)
    ),
    seed=_optional(_check_integer),
    headlines=_list_of(_HEADLINE),
)
_STORED_REPORT = _dict_with_fields(
    study=_check_text,
    command=_check_text,
    reduced=_dict_of(_check_pair),
    options=_dict_of(_accept_any),
    environment=_dict_of(_check_text),
    date=_check_text,
    seconds=_optional(_check_number),
    report=_REPORT,
)
