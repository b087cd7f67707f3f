"""Figure 9 in the paper's layout, one line for each run, and the table of controllers as a picture."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from cdqn.quartic_oscillator import ground_state_energy
from cdqn.report.figures import save
from cdqn.report.palette import ALGORITHMS
from cdqn.report.reproduction import Reproduction, select

_INK, _GREY = "#222222", "#777777"
_LABELS = {"cdqn": "C-DQN", "dqn": "DQN"}


def draw_fig9(reproduction: Reproduction, path: str | Path) -> None:
    """Energy over the simulated time of training, C-DQN at the left, DQN at the right; PNG or PDF, by the suffix."""
    from matplotlib.figure import Figure

    ground = ground_state_energy()
    figure = Figure(figsize=(10.5, 4.4), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    for axes, name in zip(panels, _LABELS, strict=True):
        settings = sorted({row.setting for row in reproduction.rows if row.algorithm == name})
        for setting, strength in zip(settings, np.linspace(1, 0.45, len(settings)), strict=True):
            time_T, energy_T, _ = select(reproduction, name, setting, "energy")
            axes.plot(time_T, energy_T, color=ALGORITHMS[name].colour, alpha=strength, linewidth=1.3, label=setting)
        axes.axhline(ground, color=_GREY, linewidth=1, linestyle=(0, (2, 1.5)))
        axes.annotate("ground state", (1, ground), (-2, 3), ("axes fraction", "data"), "offset points", ha="right")
        axes.set_yscale("log")
        axes.set_xlabel("simulated time of training")
        axes.set_title(_LABELS[name], loc="left", fontsize=10, color=_INK)
        axes.grid(color="#e6e6e6", linewidth=0.8, which="both")
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(fontsize=8.5, frameon=False)
    panels[0].set_ylabel("mean energy, t from 50 to 100")
    figure.suptitle(f"Fig. 9 again: cooling a quartic oscillator · {reproduction.about}", fontsize=10.5, color=_INK)
    save(figure, path)


def draw_controllers(reproduction: Reproduction, path: str | Path) -> None:
    """Mean energy of each controller with its standard error, above that of the ground state."""
    from matplotlib.figure import Figure

    ground = ground_state_energy()
    figure = Figure(figsize=(6.5, 3), layout="constrained")
    axes = figure.subplots()
    rows = reproduction.rows[::-1]
    energies, errors = [row.value for row in rows], [row.stderr for row in rows]
    axes.errorbar(energies, range(len(rows)), xerr=errors, fmt="o", color=_INK, capsize=3)
    axes.axvline(ground, color=_GREY, linewidth=1, linestyle=(0, (2, 1.5)), label="ground state")
    axes.set_yticks(range(len(rows)), [row.algorithm for row in rows])
    axes.set_xscale("log")
    axes.set_xlabel("mean energy, t from 50 to 100")
    axes.set_title(reproduction.about, fontsize=8.5, color=_GREY, loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8.5)
    save(figure, path)
