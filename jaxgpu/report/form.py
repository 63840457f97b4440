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
    ValueError: study=3; it must be a text
    """
    _RECORD("", record)
    try:
        json.dumps(record, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"{arguments.shown(error.object[error.start])} in a text; it must be one of UTF-8"
        ) from error


def _anything(name: str, value: Any) -> None:
    """Accept any value: it is shown as it is."""


def _text(name: str, value: Any) -> None:
    _hold(name, value, isinstance(value, str), "a text")


def _number(name: str, value: Any) -> None:
    good = isinstance(value, int | float) and not isinstance(value, bool)
    try:
        _hold(name, float(value) if good else value, good, "a number")
    except OverflowError:  # an integer above the largest float
        _hold(name, value, False, "a number")


def _whole(name: str, value: Any) -> None:
    _hold(name, value, isinstance(value, int) and not isinstance(value, bool), "a whole number")


def _digits(name: str, value: Any) -> None:
    _whole(name, value)
    _hold(name, value, 1 <= value <= _MOST_DIGITS, f"a whole number from 1 to {_MOST_DIGITS}")


def _base64(name: str, value: Any) -> None:
    _text(name, value)
    try:
        base64.b64decode(value)
    except ValueError:
        _hold(name, value, False, "a file in base64")


def _or_none(check: Check) -> Check:
    return lambda name, value: None if value is None else check(name, value)


def _pair(name: str, value: Any) -> None:
    _hold(name, value, isinstance(value, list) and len(value) == 2, "two numbers")
    _each(_number)(name, value)


def _each(check: Check) -> Check:
    def check_list(name: str, value: Any) -> None:
        _hold(name, value, isinstance(value, list), "a list")
        for i, part in enumerate(value):
            check(f"{name}[{i}]", part)

    return check_list


def _by_name(check: Check) -> Check:
    def check_values(name: str, value: Any) -> None:
        _hold(name, value, isinstance(value, dict), "values by their names")
        for key, part in value.items():
            check(f"{name}[{key!r}]", part)

    return check_values


def _fields(**checks: Check) -> Check:
    def check_fields(name: str, value: Any) -> None:
        _hold(name or "the record", value, isinstance(value, dict), "values by their names")
        for field, check in checks.items():
            whole = f"{name}.{field}".lstrip(".")
            if field not in value:
                raise ValueError(f"{whole} is missing")
            check(whole, value[field])

    return check_fields


def _hold(name: str, value: Any, good: bool, need: str) -> None:
    if not good:
        raise ValueError(f"{name}={arguments.shown(value)}; it must be {need}")


_FIGURE = _fields(caption=_text, mime=_text, data=_base64, numbers=_text)
_TABLE = _fields(
    caption=_text, columns=_each(_anything), rows=_each(_each(_anything)), digits=_digits
)
_HEADLINE = _fields(what=_text, value=_anything, beside=_text, digits=_digits)
_REPORT = _fields(
    title=_text,
    lead=_text,
    figures=_each(_FIGURE),
    tables=_each(_TABLE),
    findings=_each(_text),
    citations=_each(_text),
    timing=_by_name(_fields(compile=_number, run=_number, steps=_number)),
    seed=_or_none(_whole),
    headlines=_each(_HEADLINE),
)
_RECORD = _fields(
    study=_text,
    command=_text,
    reduced=_by_name(_pair),
    options=_by_name(_anything),
    environment=_by_name(_text),
    date=_text,
    seconds=_or_none(_number),
    report=_REPORT,
)
