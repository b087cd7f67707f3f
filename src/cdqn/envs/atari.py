"""Atari 2600 as in the paper (App. E.1), on ale-py's native vector environment.

One expression of the pipeline, from the emulator to the learner:

    up to 30 no-op frames, FIRE where the game waits for it
    → 4 frames for each action, their rewards summed
    → the brighter of the last two frames, grey, downscaled by 2 to 105×80
    → the last 4 of these

A lost life ends an episode for the learner while the game goes on: `infos["life_lost"]` says where, and
`terminated` stays what Gymnasium means by it, the end of the game. Rewards are raw scores.

ale-py's own options for this are not used: `episodic_life` restarts the whole game at each lost life, and
`life_loss_info` flags `terminated` without a reset following.
"""

import difflib
import re
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from cdqn.errors import MissingPackageError, UnsupportedEnvironmentError
from cdqn.integrations.optional import ale_roms, ale_vector_env

FRAME_SIZE = (105, 80)
"""Height and width: the screen of 210×160 downscaled exactly by 2."""
FRAME_STACK = 4
ACTION_REPEAT = 4
NOOP_MAX = 30
TIME_LIMIT_STEPS = 20_000
STICKY_ACTIONS_V5 = 0.25
"""Chance that the emulator repeats the action before, in Gymnasium's ALE/…-v5; the paper has none."""

_USUAL_NAME = re.compile(r"^(ALE/)?(?P<game>[A-Za-z0-9_]+?)(NoFrameskip|Deterministic)?(-v(?P<version>\d+))?$")

Observation = NDArray[np.uint8]
Infos = dict[str, Any]


class AtariVectorEnv(VectorEnv[Observation, NDArray[np.int64], NDArray[Any]]):
    """Games of one kind side by side; autoreset is disabled, every episode begins with a seed of its own.

    infos: "lives" and "life_lost" of each environment, and "action", what was played: after a lost life FIRE,
    in games that have it, because some of them wait for it.
    """

    tells_lives = True
    """The collector heeds "life_lost" and "action"."""

    def __init__(
        self,
        game: str,
        num_envs: int,
        *,
        frame_size: tuple[int, int] = FRAME_SIZE,
        sticky_actions: float = 0.0,
        time_limit_steps: int = TIME_LIMIT_STEPS,
    ) -> None:
        native = ale_vector_env()
        height, width = frame_size
        self._native = native(
            game,
            num_envs,
            img_height=height,
            img_width=width,
            grayscale=True,
            maxpool=True,
            stack_num=FRAME_STACK,
            frameskip=ACTION_REPEAT,
            noop_max=NOOP_MAX + 1,  # ale-py draws fewer than this, FIRE included where the game has it
            use_fire_reset=True,
            repeat_action_probability=sticky_actions,
            # Never reached, we count ourselves: at its own limit the last frame would be missing.
            max_num_frames_per_episode=ACTION_REPEAT * (time_limit_steps + 1),
            reward_clipping=False,
            autoreset_mode=AutoresetMode.NEXT_STEP,
        )
        self.game = game
        self.num_envs = num_envs
        self.time_limit_steps = time_limit_steps
        self.metadata = {"autoreset_mode": AutoresetMode.DISABLED, "render_fps": 60 // ACTION_REPEAT}
        self.single_observation_space = self._native.single_observation_space
        self.single_action_space = self._native.single_action_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        meanings = [action.name for action in self._native.ale.get_action_set()]
        self._fire = meanings.index("FIRE") if "FIRE" in meanings else None
        self._lives = np.zeros(num_envs, np.int64)
        self._life_lost = np.zeros(num_envs, bool)
        self._ended = np.ones(num_envs, bool)
        self._length = np.zeros(num_envs, np.int64)
        self._observation: Observation = np.zeros(self.observation_space.shape or (), np.uint8)

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Observation, Infos]:
        """Begin episodes, all or where options["reset_mask"] is true; one seed for each environment, or one."""
        mask = np.ones(self.num_envs, bool) if options is None else np.asarray(options["reset_mask"], bool)
        seeds = None
        if seed is not None:
            every = np.arange(seed, seed + self.num_envs) if isinstance(seed, int) else np.asarray(seed)
            seeds = (every[mask] & 0x7FFFFFFF).astype(np.int64)  # the emulator's seeds are 31 bits
        self._observation, infos = self._native.reset(seed=seeds, options={"reset_mask": mask})
        self._lives[mask] = infos["lives"][mask]
        self._life_lost[mask] = False
        self._ended[mask] = False
        self._length[mask] = 0
        return self._observation, {"lives": infos["lives"]}

    def step(
        self, actions: NDArray[np.int64]
    ) -> tuple[Observation, NDArray[Any], NDArray[np.bool_], NDArray[np.bool_], Infos]:
        """One decision in every environment."""
        if self._ended.any():  # the native environment would begin episodes by itself, unseeded
            raise UnsupportedEnvironmentError(
                f"environment {int(self._ended.argmax())} of {self.game} has ended: reset it before the next step"
            )
        if self._fire is not None and self._life_lost.any():
            actions = np.where(self._life_lost, self._fire, actions)
        self._observation, reward, terminated, _, infos = self._native.step(actions)
        self._length += 1
        truncated = (self._length >= self.time_limit_steps) & ~terminated
        lives = infos["lives"]
        self._ended = terminated | truncated
        # At 0 lives some games go on for a while: the end of the game is said by `terminated`.
        self._life_lost = (lives < self._lives) & (lives > 0) & ~self._ended
        self._lives[:] = lives
        infos = {"lives": lives, "life_lost": self._life_lost, "action": actions}
        return self._observation, reward, terminated, truncated, infos

    def render(self) -> tuple[Any, ...]:
        """What the agent sees, four times enlarged, one RGB picture for each environment."""
        newest = self._observation[:, -1]
        return tuple(frame.repeat(4, 0).repeat(4, 1)[..., None].repeat(3, -1) for frame in newest)


def find_game(env_id: str) -> str | None:
    """The ROM of a game by any of its usual names (SpaceInvaders, ALE/SpaceInvaders-v5, …); None for other ids."""
    match = _USUAL_NAME.match(env_id)
    if match is None:
        return None
    try:
        roms = ale_roms()
    except MissingPackageError:
        if env_id.startswith("ALE/") or "NoFrameskip" in env_id:
            raise
        return None
    by_name = {rom.replace("_", ""): rom for rom in roms}
    game = by_name.get(match["game"].replace("_", "").lower())
    if game is None and env_id.startswith("ALE/"):
        raise UnsupportedEnvironmentError(f"there is no Atari game {match['game']!r}: {near_games(match['game'])}")
    return game


def near_games(name: str) -> str:
    """A hint at the games whose names are near, or at where to find all."""
    roms = ale_roms()
    near = difflib.get_close_matches(name.lower().removeprefix("ale/"), roms, n=3, cutoff=0.6)
    return f"did you mean {' or '.join(map(usual_name, near))}?" if near else ""


def usual_name(rom: str) -> str:
    """space_invaders → SpaceInvaders."""
    return "".join(part.capitalize() for part in rom.split("_"))


def default_sticky_actions(env_id: str) -> float:
    """Gymnasium's ALE/…-v5 has sticky actions, whatever else names a game has none, as in the paper."""
    match = _USUAL_NAME.match(env_id)
    return STICKY_ACTIONS_V5 if match and match["version"] == "5" else 0.0
