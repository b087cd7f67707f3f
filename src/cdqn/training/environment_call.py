"""What stands around every reset and step of an environment: patience, and plain words when it fails."""

import signal
import sys
import threading
import time
import traceback
import weakref
from pathlib import Path
from typing import Any, Self

from gymnasium.vector import VectorEnv

from cdqn.errors import ConfigError, EnvironmentTimeoutError, UnsupportedEnvironmentError

NOTICE_SECONDS = 30.0
"""After this much silence somebody in front of a screen should know what is being waited for."""
LOOK_SECONDS = 1.0


class EnvironmentCall:
    """`with call("step 12"): env.step(...)`.

    After half a minute a sentence on stderr says what is being waited for; after `limit_seconds`, where one is set, the
    wait ends with an error. What Gymnasium itself stumbles over, an old API or a wrong shape, becomes a line that says
    what it wants, and a process of the environment's that has died is named.

    A class that is entered again and again, because this stands around every step: a generator would take ten times
    as long.
    """

    def __init__(self, env: VectorEnv[Any, Any, Any], limit_seconds: float | None = None) -> None:
        self._env = env
        self._limit_seconds = limit_seconds
        self._what = ""
        self.since: float | None = None
        """When the call under way began."""
        self._watched = False
        self._former_handler: Any = None

    def __call__(self, what: str) -> Self:
        """The same object, for the next call."""
        self._what = what
        return self

    def __enter__(self) -> None:
        if not self._watched:  # not before: an environment may fork processes while it is made
            self._watched = True
            _watch(self)
        self.since = time.monotonic()
        if self._limit_seconds is not None:
            self._former_handler = _arm(self._limit_seconds, self._give_up)

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        self.since = None
        if self._limit_seconds is not None:
            _disarm(self._former_handler)
        if error is None:
            return
        if isinstance(error, EOFError | ConnectionError):
            self._name_the_dead(error)
        elif isinstance(error, ValueError | TypeError) and _came_from_gymnasium(trace):
            raise UnsupportedEnvironmentError(
                f"the environment {name_of(self._env)} does not do what Gymnasium wants at {self._what} "
                f"({type(error).__name__}: {error}): reset returns (observation, info), step returns (observation, "
                "reward, terminated, truncated, info), and an observation has the shape "
                f"{self._env.single_observation_space.shape} of its space; fix it, then resume from the last checkpoint"
            ) from error
        error.add_note(f"raised by the environment {name_of(self._env)} at {self._what}, not by cdqn")

    def notice(self) -> str:
        """The sentence after a long silence."""
        advice = "" if self._limit_seconds is not None else "; --environment-timeout-seconds gives up after a time"
        waited = f"still waiting for the environment after {NOTICE_SECONDS:g} s"
        return f"cdqn: {waited}: {self._what} has not returned{advice}"

    def _give_up(self, *_: Any) -> None:
        raise EnvironmentTimeoutError(
            f"the environment has not returned from {self._what} within environment_timeout_seconds "
            f"{self._limit_seconds:g}: fix the environment or raise the limit, then resume from the last checkpoint"
        )

    def _name_the_dead(self, error: BaseException) -> None:
        processes = getattr(self._env.unwrapped, "processes", None) or []
        for process in processes:
            process.join(1.0)  # its end of the pipe closes a moment before it is gone
        dead = [(index, process.exitcode) for index, process in enumerate(processes) if process.exitcode is not None]
        if dead:
            index, code = dead[0]
            how = f"killed by signal {-code}" if code < 0 else f"exit code {code}"
            raise UnsupportedEnvironmentError(
                f"the process of environment {index} died ({how}) during {self._what}: what it printed may say why; "
                "fix the environment, then resume from the last checkpoint"
            ) from error


def name_of(env: VectorEnv[Any, Any, Any]) -> str:
    """Its id, where it has one, or its class."""
    singles = getattr(env.unwrapped, "envs", None) or [env]
    spec = singles[0].spec
    return spec.id if spec is not None else type(singles[0].unwrapped).__name__


def _came_from_gymnasium(trace: Any) -> bool:
    places = [Path(frame.filename).parts for frame in traceback.extract_tb(trace)]
    return "gymnasium" in next(parts for parts in reversed(places) if "numpy" not in parts)


def _arm(seconds: float, handler: Any) -> Any:
    """Let the alarm of this process ring; returns what handled it before."""
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        raise ConfigError(
            "environment_timeout_seconds needs the alarm of a Unix process, in its main thread: drop it here"
        )
    former = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    return former


def _disarm(former: Any) -> None:
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, former)


_calls: "weakref.WeakSet[EnvironmentCall]" = weakref.WeakSet()
_lock = threading.Lock()
_watching = False
"""Whether the thread is there: the set alone may be empty for a moment while it still looks."""


def _watch(call: EnvironmentCall) -> None:
    """Look after this call too, from the one thread of the process that does so."""
    global _watching
    with _lock:
        _calls.add(call)
        if not _watching:
            _watching = True
            threading.Thread(target=_look_after, name="cdqn-patience", daemon=True).start()


def _look_after() -> None:
    """Until no call is left."""
    global _watching
    told: dict[int, float] = {}
    while True:
        time.sleep(LOOK_SECONDS)
        with _lock:
            calls = list(_calls)
            if not calls:
                _watching = False
                return
        for call in calls:
            since = call.since
            if since is not None and time.monotonic() - since > NOTICE_SECONDS and told.get(id(call)) != since:
                told[id(call)] = since
                print(call.notice(), file=sys.stderr, flush=True)
        del calls, call
