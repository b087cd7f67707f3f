"""Settings as plain values of Python, which can be compared and written down."""

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from cdqn.errors import ConfigError

Range = tuple[Callable[[Any], bool], str]
"""Whether a number will do, and in words which do."""
UNIT: Range = (lambda v: 0 <= v <= 1, "within [0, 1]")
POSITIVE: Range = (lambda v: v > 0 and math.isfinite(v), "a number above 0")
COUNT: Range = (lambda v: isinstance(v, int) and v >= 1, "a whole number of at least 1")
LARGEST = 2**63
"""Of any whole number: what does not fit into 64 bits is a slip of the hand."""
MOST_UNITS = 1_000_000
"""Of a layer's widths, channels or pixels."""


def require_number(setting: str, value: Any, allowed: Range) -> None:
    """Refuse what is no number of that range; None is not set."""
    check, wanted = allowed
    is_number = type(value) is float or (type(value) is int and abs(value) < LARGEST)
    if value is not None and not (is_number and check(value)):
        raise ConfigError(f"{setting} is {value!r}: it must be {wanted}")


def require_device(value: Any) -> None:
    """Refuse what is no name of a device; whether there is such a one is asked when networks are made."""
    if not (isinstance(value, str) and re.fullmatch(r"auto|cpu|mps|cuda(:\d{1,4})?", value)):
        raise ConfigError(
            f"device is {value!r}: it must be auto, cpu, cuda, a GPU by its number such as cuda:1, or mps"
        )


def require_choice(
    setting: str, value: Any, allowed: Sequence[str], is_own: Callable[[str], bool] | None = None
) -> None:
    """Refuse what is not among the names; `is_own` says which others are code of the user's. None is not set."""
    chosen = isinstance(value, str) and (value in allowed or (is_own is not None and is_own(value)))
    if value is not None and not chosen:
        or_own = "" if is_own is None else ", or your own as module:Name"
        raise ConfigError(f"{setting} is {value!r}: it must be one of {', '.join(allowed)}{or_own}")


def require_sizes(setting: str, sizes: tuple[Any, ...] | None, count: int | None, wanted: str) -> None:
    """Refuse what is not `count` sizes, or any number of them where that is None; None is not set."""
    if sizes is None:
        return
    good = all(type(size) is int and 1 <= size <= MOST_UNITS for size in sizes)
    if len(sizes) != (count or len(sizes)) or not good:
        raise ConfigError(f"{setting} is {sizes!r}: it must be {wanted} from 1 to {MOST_UNITS}")


def numbers(values: Any) -> tuple[Any, ...]:
    """A tuple, of Python's whole numbers where they are NumPy's; what is no list becomes one without a number."""
    rows = values if isinstance(values, Iterable) else (None,)
    return tuple(int(n) if isinstance(n, np.integer) else n for n in rows)


def pairs(values: Any) -> tuple[tuple[Any, ...], ...]:
    """A tuple of tuples; what is none of that becomes one that is no pair."""
    rows = values if isinstance(values, Iterable) else ((),)
    return tuple(tuple(row) if isinstance(row, Iterable) else (row,) for row in rows)


def object_text(value: Any) -> Any:
    """A dict as JSON; what is no dict comes back as it is."""
    if not isinstance(value, Mapping):
        return value
    try:
        return json.dumps(dict(value), sort_keys=True)
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigError(
            f"{value!r} cannot be written down as env_kwargs ({error}): JSON has numbers, texts, lists and dicts"
        ) from error


def read_object(setting: str, text: str | None) -> dict[str, Any]:
    """The dict of a JSON text; an empty one for None."""
    try:
        value = {} if text is None else json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigError(
            f"""{setting} is {text!r}, which is not JSON ({error}): write '{{"name": value}}'"""
        ) from error
    if not isinstance(value, dict):
        raise ConfigError(f"""{setting} is {text!r}: it must be a JSON object, '{{"name": value}}'""")
    return value
