"""Cooling a quartic oscillator by measurement and feedback (App. B.1): `cdqn/QuarticOscillator-v0`."""

from cdqn.envs.oscillator.scoring import TEST_ENERGY_LIMIT, late_energies
from cdqn.envs.oscillator.single import QuarticOscillatorEnv
from cdqn.envs.oscillator.vector import QuarticOscillatorVectorEnv

__all__ = ["TEST_ENERGY_LIMIT", "QuarticOscillatorEnv", "QuarticOscillatorVectorEnv", "late_energies"]
