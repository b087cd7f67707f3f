"""Frames to a video file: GIF by Pillow, which matplotlib brings along; MP4 by imageio-ffmpeg."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cdqn.errors import ConfigError, MissingPackageError

Frame = NDArray[np.uint8]


def write_video(path: Path, frames: Sequence[Frame], frames_per_second: float) -> None:
    """Write H × W × 3 frames; the suffix says how."""
    if path.suffix == ".gif":
        _write_gif(path, frames, frames_per_second)
    elif path.suffix == ".mp4":
        _write_mp4(path, frames, frames_per_second)
    else:
        raise ConfigError(f"a video cannot be written as {path.name!r}: name it .mp4 or .gif")


def _write_gif(path: Path, frames: Sequence[Frame], frames_per_second: float) -> None:
    from PIL import Image

    first, *rest = (Image.fromarray(frame) for frame in frames)
    first.save(path, save_all=True, append_images=rest, duration=round(1000 / frames_per_second), loop=0)


def _write_mp4(path: Path, frames: Sequence[Frame], frames_per_second: float) -> None:
    try:
        import imageio_ffmpeg
    except ImportError as error:
        raise MissingPackageError("an .mp4 needs imageio-ffmpeg: pip install 'cdqn[video]', or name a .gif") from error
    height, width = frames[0].shape[:2]
    # macro_block_size 2: players want even sizes, and no more than that.
    writer: Any = imageio_ffmpeg.write_frames(
        str(path), (width, height), fps=frames_per_second, macro_block_size=2, ffmpeg_log_level="error"
    )
    writer.send(None)
    for frame in frames:
        writer.send(np.ascontiguousarray(frame))
    writer.close()
