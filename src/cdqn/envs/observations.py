"""From what an environment shows to what a network takes: a vector, a board or an image.

    one number of finitely many                    → "discrete": a vector, its one-hot code
    codes, Dicts and tuples of anything here       → a vector, joined as Gymnasium's FlattenObservation does it
    arrays of two dimensions                       → a vector; bytes of an image's size → an image of one channel
    arrays of three, fewer than 36 cells a side    → a board: (height, width, channels)
    bytes, at least 36 pixels a side               → an image: (channels, height, width); stacked ones are joined

Text in a Dict is left out. Whatever is not named here is left for `describe` to refuse.
"""

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, OneOf, Space, Text, Tuple
from gymnasium.spaces.utils import flatten, flatten_space
from numpy.typing import NDArray

from cdqn.errors import ConfigError, UnsupportedEnvironmentError

if TYPE_CHECKING:
    from cdqn.envs.factory import EnvSpec

Array = NDArray[Any]
Form = Literal["vector", "discrete", "board", "image"]

SMALLEST_IMAGE = 36
"""Height and width that the convolutions of the Atari network need."""
SMALLEST_BOARD = 3
"""Height and width that a convolution of 3×3 needs."""
MOST_CELLS = 64 * 64
"""Of a board: each has weights of its own."""
_INTEGERS = (np.int8, np.uint8, np.int16, np.uint16, np.int32)


class Adapter(NamedTuple):
    """How the observations of a space become those that an agent sees."""

    source: Space[Any]
    target: Box
    form: Form
    convert: Callable[[Any], Array]
    """Of one observation."""
    dropped: tuple[str, ...] = ()
    """Text that is left out."""


class Adapted(gym.wrappers.TransformObservation[Any, Any, Any]):
    """An environment whose observations have become those that an agent sees."""

    def __init__(self, env: gym.Env[Any, Any], adapter: Adapter) -> None:
        super().__init__(env, self._seen, adapter.target)
        self.adapter = adapter

    def _seen(self, observation: Any) -> Array:
        try:
            return self.adapter.convert(observation)
        except (TypeError, ValueError, LookupError) as error:
            shape = f" of shape {np.shape(observation)}" if isinstance(observation, np.ndarray) else ""
            raise UnsupportedEnvironmentError(
                f"an observation{shape} is not in the environment's own space, {self.adapter.source}: {error}"
            ) from error


def adapted(env: gym.Env[Any, Any]) -> gym.Env[Any, Any]:
    """`env` with observations that an agent can see; itself where they are, or where they cannot be made so."""
    adapter = adapter_for(env.observation_space)
    return env if adapter is None else Adapted(env, adapter)


def adapter_of(env: gym.Env[Any, Any]) -> Adapter | None:
    """What `adapted` has put around an environment."""
    return env.adapter if isinstance(env, Adapted) else None


def adapter_for(space: Space[Any]) -> Adapter | None:
    """What there is to do; None: nothing, or nothing that we know."""
    if isinstance(space, Box):
        return _array_adapter(space)
    kept, dropped = _without_text(space)
    if kept is None or not _is_numbers(kept):
        return None
    flat = flatten_space(kept)
    if not isinstance(flat, Box) or not flat.shape[0]:
        return None
    dtype = _smallest_type(flat)
    target = Box(flat.low.astype(dtype), flat.high.astype(dtype), dtype=dtype.type)
    form: Form = "discrete" if isinstance(kept, Discrete) else "vector"
    return Adapter(space, target, form, partial(_joined, kept, dtype), dropped)


def usable_keys(space: Space[Any]) -> list[str]:
    """Of a Dict, the parts that could be learned from by themselves."""
    return [name for name, part in space.spaces.items() if _is_numbers(part)] if isinstance(space, Dict) else []


def form_of(space: Box) -> Form | None:
    """Of an array that needs no adapter; None: it cannot be learned from."""
    if len(space.shape) == 1:
        return "vector"
    form, axes = _layout(space.shape, space.dtype) if len(space.shape) == 3 else (None, ())
    return form if axes == (0, 1, 2) else None


def agent_batch(asked: str, observation: Any, spec: "EnvSpec", adapter: Adapter | None) -> tuple[Array, bool]:
    """`batch_of` what a user has given to `asked`, in the agent's type."""
    try:
        batch, is_single = batch_of(observation, spec.observation_shape, adapter)
        return batch.astype(spec.observation_dtype, copy=False), is_single
    except (TypeError, ValueError, LookupError) as error:
        shape = spec.observation_shape
        is_array = isinstance(observation, np.ndarray)
        given = f"an observation of shape {observation.shape}" if is_array else repr(observation)
        wanted = f"{shape} or (N, *{shape})" if adapter is None else f"of {adapter.source}, or several"
        raise ConfigError(f"{asked} got {given}: it must be {wanted}") from error


def batch_of(observation: Any, shape: tuple[int, ...], adapter: Adapter | None) -> tuple[Array, bool]:
    """One observation or several, as an environment returns them, in the form of a batch; and whether it was one.

    What has the form that an agent sees, `shape`, may be given as well. ValueError if it is neither.
    """
    if adapter is not None and isinstance(adapter.source, Dict | Tuple | OneOf):
        if isinstance(observation, Mapping | tuple):
            return adapter.convert(observation)[None], True
    elif adapter is not None:
        source, array = adapter.source, np.asarray(observation)
        several = array[None] if array.shape == source.shape else array
        if several.ndim and several.shape[1:] == source.shape and len(several):
            if not isinstance(source, Box) and not all(source.contains(one) for one in several):
                raise ValueError("not in the space")
            return np.stack([adapter.convert(one) for one in several]), several is not array
    array = np.asarray(observation)
    if array.shape == shape:
        return array[None], True
    if array.shape[1:] == shape and len(array):
        return array, False
    raise ValueError("neither of the environment's form nor of the agent's")


# Numbers that are no array ------------------------------------------------------------------------------


def _without_text(space: Space[Any], place: str = "") -> tuple[Space[Any] | None, tuple[str, ...]]:
    """The space less the text in its Dicts, and where that was; None: nothing else is in it."""
    if _is_text(space):
        return None, (place,)
    if not isinstance(space, Dict):
        return space, ()
    parts = {name: _without_text(part, f"{place}.{name}" if place else name) for name, part in space.spaces.items()}
    kept = {name: part for name, (part, _) in parts.items() if part is not None}
    dropped = tuple(name for _, names in parts.values() for name in names)
    return (Dict(kept) if dropped else space) if kept else None, dropped


def _is_numbers(space: Space[Any]) -> bool:
    """Whether a flat vector of it has a meaning: Gymnasium flattens text as well, into codes of letters."""
    if isinstance(space, Dict):
        return all(map(_is_numbers, space.spaces.values()))
    if isinstance(space, Tuple | OneOf):
        return all(map(_is_numbers, space.spaces))
    try:
        return space.is_np_flattenable and not _is_text(space)
    except NotImplementedError:  # a kind of space that is not Gymnasium's own
        return False


def _is_text(space: Space[Any]) -> bool:
    """Gymnasium's own, or somebody else's kind of it, such as MiniGrid's missions."""
    return isinstance(space, Text) or (space.dtype is not None and space.dtype.kind in "US")


def _smallest_type(space: Box) -> np.dtype[Any]:
    """In which its numbers fit: Gymnasium has 8 bytes for each 0 or 1 of a code."""
    if not np.issubdtype(space.dtype, np.integer):
        return np.dtype(space.dtype)
    low, high = int(space.low.min()), int(space.high.max())
    kinds = [kind for kind in _INTEGERS if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max]
    return np.dtype(kinds[0] if kinds else np.int64)


def _joined(space: Space[Any], dtype: np.dtype[Any], observation: Any) -> Array:
    return np.asarray(flatten(space, observation), dtype=dtype)


# Arrays -------------------------------------------------------------------------------------------------


def _array_adapter(space: Box) -> Adapter | None:
    shape = space.shape
    if len(shape) == 1:
        return None
    if len(shape) == 3:
        form, axes = _layout(shape, space.dtype)
        if form is not None:
            return None if axes == (0, 1, 2) else _rearranged(space, form, partial(_permuted, axes))
    if len(shape) == 2 and _is_image(shape, space.dtype):
        return _rearranged(space, "image", partial(_reshaped, (1, *shape)))
    if len(shape) == 4:
        form, axes = _layout(shape[1:], space.dtype)
        if form == "image":
            return _rearranged(space, form, partial(_stacked, axes))
    return _rearranged(space, "vector", partial(_reshaped, (-1,))) if math.prod(shape) <= MOST_CELLS else None


def _layout(shape: tuple[int, ...], dtype: Any) -> tuple[Form | None, tuple[int, ...]]:
    """Image or board, and the order of axes in which the one has its channels first, the other last; None: neither.

    There are fewer channels than rows or columns. Where that does not tell, boards have them last, images first.
    """
    first, middle, last = shape
    channels_last = last < first or (last == first and not _is_image((middle, last), dtype))
    sides = (first, middle) if channels_last else (middle, last)
    if _is_image(sides, dtype):
        return "image", (2, 0, 1) if channels_last else (0, 1, 2)
    if min(sides) >= SMALLEST_BOARD and math.prod(sides) <= MOST_CELLS:
        return "board", (0, 1, 2) if channels_last else (1, 2, 0)
    return None, ()


def _is_image(sides: tuple[int, ...], dtype: Any) -> bool:
    return bool(dtype == np.uint8 and min(sides) >= SMALLEST_IMAGE)


def _rearranged(space: Box, form: Form, convert: Callable[[Array], Array]) -> Adapter:
    kind: Any = np.dtype(space.dtype).type
    target = Box(convert(space.low), convert(space.high), dtype=kind)
    return Adapter(space, target, form, convert)


def _permuted(axes: tuple[int, ...], array: Any) -> Array:
    return np.ascontiguousarray(np.asarray(array).transpose(axes))


def _reshaped(shape: tuple[int, ...], array: Any) -> Array:
    return np.asarray(array).reshape(shape)


def _stacked(axes: tuple[int, ...], array: Any) -> Array:
    """The channels of all images of a stack, one behind the other."""
    arranged = np.asarray(array).transpose(0, *(axis + 1 for axis in axes))
    return np.ascontiguousarray(arranged.reshape(-1, *arranged.shape[2:]))
