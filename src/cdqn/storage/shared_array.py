"""An array that a checkpoint need not write again."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class SharedArray:
    """Bytes in a state whose content never changes under its name: a checkpoint may keep the file of the one before.

    It stands in the place of an array. Where the checkpoint before has nothing of this name, saving calls `content`,
    which gives the array and its name: another one, if less is needed by now than what the first name stands for.
    What is loaded again is the plain array.
    """

    name: str
    """Letters, digits and dashes; other content has another name."""
    content: Callable[[], tuple[str, npt.NDArray[np.uint8]]]
