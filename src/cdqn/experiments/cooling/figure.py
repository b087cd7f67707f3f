"""Figure 9 in the paper's layout, one line for each run, and the table of controllers as a picture."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from cdqn.report.axes import GREY, INK, save
from cdqn.report.palette import ALGORITHMS
from cdqn.report.reproduction import Reproduction, select
from cdqn.tasks.oscillator import ground_state_energy

_PANELS = ("cdqn", "dqn")


def draw_fig9(reproduction: Reproduction, path: str | Path) -> None:
    """Energy over the simulated time of training, C-DQN left, DQN right; PNG or PDF, by the suffix."""
    from matplotlib.figure import Figure

    ground = ground_state_energy()
    figure = Figure(figsize=(10.5, 4.4), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    for axes, name in zip(panels, _PANELS, strict=True):
        settings = sorted({row.setting for row in reproduction.rows if row.algorithm == name})
        for setting, strength in zip(settings, np.linspace(1, 0.45, len(settings)), strict=True):
            time_T, energy_T, _ = select(reproduction, name, setting, "energy")
            axes.plot(
                time_T, energy_T - ground, color=ALGORITHMS[name].colour, alpha=strength, linewidth=1.3, label=setting
            )
        axes.set_yscale("log")
        axes.set_xlabel("simulated time of training")
        axes.set_title(ALGORITHMS[name].label, loc="left", fontsize=10, color=INK)
        axes.grid(color="#e6e6e6", linewidth=0.8, which="both")
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(fontsize=8.5, frameon=False)
    panels[0].set_ylabel(f"mean energy, t from 50 to 100,\nabove the ground state's {ground:.4f}")
    figure.suptitle(f"Fig. 9 again: cooling a quartic oscillator · {reproduction.about}", fontsize=10.5, color=INK)
    save(figure, path)


def draw_controllers(reproduction: Reproduction, path: str | Path) -> None:
    """How far each controller stays above the ground state, with its standard error."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 2.6), layout="constrained")
    axes = figure.subplots()
    rows = reproduction.rows[::-1]
    excess = np.array([row.value for row in rows]) - ground_state_energy()
    axes.errorbar(excess, range(len(rows)), xerr=[row.stderr for row in rows], fmt="o", color=INK, capsize=3)
    for place, (row, x) in enumerate(zip(rows, excess, strict=True)):
        axes.annotate(
            f"{row.value:.4f} ± {row.stderr:.4f}", (x, place), (0, 8), textcoords="offset points", ha="center"
        )
    axes.set_yticks(range(len(rows)), [row.algorithm for row in rows])
    axes.set_ylim(-0.5, len(rows) - 0.3)
    axes.set_xscale("log")
    axes.margins(x=0.15)
    axes.set_xlabel("mean energy above the ground state, t from 50 to 100")
    axes.set_title(reproduction.about, fontsize=8.5, color=GREY, loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    save(figure, path)
