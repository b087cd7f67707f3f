"""What a memory of Atari frames takes and how fast it is, on real play of Space Invaders and Pong.

    python benchmarks/frame_replay.py            # an hour: a million transitions; benchmarks/results/frame_replay.csv
    python benchmarks/frame_replay.py --fifo 50000 --random 10000 --out /tmp     # minutes, to check

Actions are random: a trained policy plays longer and sees other frames. Four environments in turn, frames of 105×80,
stacks of 4. Three tables:

* codecs: bytes and times per frame, of frames from the same play;
* fifo: a full memory of `--fifo` transitions;
* random: one of `--random` transitions, filled `--fills` times over, so that the share of frames alive is steady.
  It is smaller to save time; GB per million transitions are extrapolated in proportion, from both.

"used" is counted by the store, "resident" what the process grew by, with what the allocator cannot use any more. Times
are of single calls with full memory: reading 32 random transitions, writing 4 rows; "cpu" without the time that other
processes had the core. The promise: 2 GB per million at "fifo", 5 GB at "random", 4 ms for a batch.
"""

import argparse
import csv
import itertools
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import lz4.block
import numpy as np
import zstandard
from ale_py.vector_env import AtariVectorEnv

from cdqn.replay import Transitions, UniformReplay
from cdqn.replay.frames import COMPRESSION_LEVEL, FrameStore, estimated_bytes
from cdqn.runs.process import keep_freed_memory

GAMES = ["space_invaders", "pong"]
FRAME_SHAPE = (105, 80)
STREAMS = 4
BATCH = 32
READS = 2000
Row = tuple[str, str, str, float]


def play(game: str, seed: int) -> Iterator[Transitions]:
    """Random play for ever; a step that only resets an environment is no transition."""
    height, width = FRAME_SHAPE
    env = AtariVectorEnv(
        game, STREAMS, img_height=height, img_width=width, reward_clipping=False, use_fire_reset=True, frameskip=4
    )
    rng = np.random.default_rng(seed)
    observation, _ = env.reset(seed=seed + np.arange(STREAMS))
    observation = observation.copy()
    ended, first = np.zeros(STREAMS, bool), np.ones(STREAMS, bool)
    while True:
        action = rng.integers(env.single_action_space.n, size=STREAMS)
        next_observation, reward, terminated, truncated, _ = env.step(action)
        next_observation = next_observation.copy()
        rows = Transitions(
            observation, action, reward.astype(np.float32), next_observation, terminated, np.arange(STREAMS), first
        )
        yield rows if not ended.any() else Transitions(*(column[~ended] for column in rows))
        first, ended = ended, terminated | truncated
        observation = next_observation


def codecs() -> dict[str, tuple[Callable[[bytes], bytes], Callable[[bytes], bytes]]]:
    """Compress and decompress, by name."""
    size = FRAME_SHAPE[0] * FRAME_SHAPE[1]
    hc: dict[str, Any] = {"mode": "high_compression", "compression": 9}
    table = {
        name: (
            lambda frame, options=options: lz4.block.compress(frame, store_size=False, **options),
            lambda data: lz4.block.decompress(data, uncompressed_size=size),
        )
        for name, options in {"lz4": {}, "lz4 hc 9": hc}.items()
    }
    for level in (-1, 1, 3, 6, 9, 12):
        compressor, decompressor = zstandard.ZstdCompressor(level=level), zstandard.ZstdDecompressor()
        table[f"zstd {level}"] = compressor.compress, decompressor.decompress
    return table


def measure_codecs(game: str, seed: int, count: int) -> list[Row]:
    """Mean bytes and µs per frame; every 10th frame of the first stream, so that several episodes are in it."""
    frames: list[bytes] = []
    for step, rows in enumerate(play(game, seed)):
        if step % 10 == 0:
            frames.append(rows.next_observation[0, -1].tobytes())
        if len(frames) == count:
            break
    table: list[Row] = []
    for name, (compress, decompress) in codecs().items():
        start = time.perf_counter()
        compressed = [compress(frame) for frame in frames]
        middle = time.perf_counter()
        restored = [decompress(data) for data in compressed]
        end = time.perf_counter()
        assert restored == frames
        for quantity, value in {
            "bytes_per_frame": np.mean([len(data) for data in compressed]),
            "compress_us": (middle - start) / count * 1e6,
            "decompress_us": (end - middle) / count * 1e6,
        }.items():
            table.append((game, name, quantity, float(value)))
    return table


def measure_store(game: str, eviction: str, capacity: int, fills: int, seed: int) -> list[Row]:
    """Fill a memory `fills` times over, then time single calls."""
    keep_freed_memory()  # as the command line does
    stream, added = play(game, seed), 0
    next(stream)  # the emulators are made
    resident = resident_bytes()
    store = FrameStore(capacity, (4, *FRAME_SHAPE), eviction)
    replay = UniformReplay(store, rng=np.random.default_rng(seed), eviction=eviction)
    while added < fills * capacity:
        rows = next(stream)
        replay.add(rows)
        added += len(rows.action)
    resident = resident_bytes() - resident
    chooser = np.random.default_rng(seed + 1)
    batches = [chooser.integers(capacity, size=BATCH) for _ in range(READS)]
    reads = [milliseconds(store.read, slots) for slots in batches]
    writes = [milliseconds(replay.add, rows) for rows in itertools.islice(stream, READS)]
    setting = f"{eviction} {capacity} filled {fills}×"
    values = {
        "bytes_per_frame": store.frame_bytes / store.frame_count,
        "frames_per_transition": store.frame_count / capacity,
        "used_GB_per_million": store.nbytes_used / capacity * 1e6 / 1e9,
        "resident_GB_per_million": resident / capacity * 1e6 / 1e9,
        "estimated_GB_per_million": estimated_bytes(1_000_000, (4, *FRAME_SHAPE), eviction) / 1e9,
    }
    for name, times in {"read_32": reads, "write_4": writes}.items():
        wall, cpu = np.array(times).T
        values |= {f"{name}_ms_median": np.median(wall), f"{name}_ms_p95": np.percentile(wall, 95)}
        values |= {f"{name}_cpu_ms_median": np.median(cpu)}
    return [(game, setting, quantity, float(value)) for quantity, value in values.items()]


def milliseconds(action: Callable[..., Any], *arguments: Any) -> tuple[float, float]:
    """Of one call: by the clock, and of this thread on the processor."""
    start, start_cpu = time.perf_counter_ns(), time.thread_time_ns()
    action(*arguments)
    end_cpu, end = time.thread_time_ns(), time.perf_counter_ns()
    return (end - start) / 1e6, (end_cpu - start_cpu) / 1e6


def resident_bytes() -> int:
    """Of this process, now (Linux)."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def main() -> None:
    """Measure, print, write the CSV."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--games", nargs="+", default=GAMES)
    parser.add_argument("--fifo", type=int, default=1_000_000, help="transitions in the memory with fifo; 0: none")
    parser.add_argument("--random", type=int, default=200_000, help="transitions in the one with random replacement")
    parser.add_argument("--fills", type=int, default=4, help="how often the latter is filled")
    parser.add_argument("--frames", type=int, default=2000, help="frames for the table of codecs; 0: none")
    parser.add_argument("--seed", type=int, default=0)
    default_out = Path(__file__).parent / "results"
    parser.add_argument("--out", type=Path, default=default_out, help="folder of frame_replay.csv")
    args = parser.parse_args()

    jobs: list[tuple[Callable[..., list[Row]], tuple[Any, ...]]] = []
    for game in args.games:
        if args.frames:
            jobs.append((measure_codecs, (game, args.seed, args.frames)))
        for eviction, capacity, fills in (("fifo", args.fifo, 1), ("random", args.random, args.fills)):
            if capacity:
                jobs.append((measure_store, (game, eviction, capacity, fills, args.seed)))
    table: list[Row] = []
    print(f"the store compresses with zstd {COMPRESSION_LEVEL}")
    context = multiprocessing.get_context("spawn")
    # A process for each, so that what it holds is its own.
    with ProcessPoolExecutor(1, mp_context=context, max_tasks_per_child=1) as pool:
        for function, arguments in jobs:
            rows = pool.submit(function, *arguments).result()
            for game, setting, quantity, value in rows:
                print(f"{game:<16}{setting:<28}{quantity:<26}{value:>10.3f}", flush=True)
            table += rows

    args.out.mkdir(parents=True, exist_ok=True)
    path = args.out / "frame_replay.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["game", "setting", "quantity", "value"])
        writer.writerows((*row[:3], round(row[3], 4)) for row in table)
    print(f"wrote {path}")


if __name__ == "__main__":
    main()
