"""Algorithms: one file each, over the interface of `base`; in house order.

What a user names as module:Class is found here too, after the user has imported it (`cdqn.storage.named_code`).
"""

from cdqn.algorithms.base import Algorithm, Assessment, BuildNetwork, Network, Networks, TensorBatch
from cdqn.algorithms.cdqn import CDQN
from cdqn.algorithms.dcdqn import DCDQN
from cdqn.algorithms.dqn import DQN
from cdqn.algorithms.rg import RG
from cdqn.errors import ConfigError
from cdqn.storage.named_code import import_pieces, is_code_name, name_of, named

__all__ = [
    "ALGORITHMS",
    "CDQN",
    "DCDQN",
    "DQN",
    "OF_THE_PAPER",
    "RG",
    "Algorithm",
    "Assessment",
    "BuildNetwork",
    "Network",
    "Networks",
    "TensorBatch",
    "find_algorithm",
    "known_name",
]

ALGORITHMS: dict[str, type[Algorithm]] = {algorithm.name: algorithm for algorithm in (CDQN, DQN, RG, DCDQN)}
OF_THE_PAPER = (CDQN.name, DQN.name, RG.name)
"""What is compared where nothing else is asked for."""


def find_algorithm(name: str) -> type[Algorithm]:
    """The algorithm of a name: one of ours, or a class of the user's, module:Class."""
    if name in ALGORITHMS:
        return ALGORITHMS[name]
    if not is_code_name(name):
        raise ConfigError(
            f"there is no algorithm {name!r}: choose from {', '.join(ALGORITHMS)}, or name your own as module:Class"
        )
    algorithm = named("algorithm", name)
    if not (isinstance(algorithm, type) and issubclass(algorithm, Algorithm)):
        raise ConfigError(f"{name} is {algorithm!r}: an algorithm is a class derived from cdqn.algorithms.Algorithm")
    return algorithm


def known_name(algorithm: str | type[Algorithm]) -> str:
    """The name of an algorithm: a class becomes known by its own, and what is typed as module:Class is imported."""
    if not isinstance(algorithm, str):
        return algorithm.name if algorithm in ALGORITHMS.values() else name_of(algorithm)
    import_pieces({"algorithm": algorithm})
    return algorithm
