"""Frames become a file of the kind that its name says."""

import sys

import numpy as np
import pytest

from cdqn.errors import ConfigError, MissingPackageError
from cdqn.integrations.video import write_video

FRAMES = [np.full((8, 12, 3), shade, np.uint8) for shade in (0, 120, 240)]


def test_gif_has_every_frame_for_its_time(tmp_path):
    from PIL import Image

    write_video(tmp_path / "a.gif", FRAMES, frames_per_second=20)
    with Image.open(tmp_path / "a.gif") as video:
        assert (video.n_frames, video.size, video.info["duration"]) == (3, (12, 8), 50)


def test_other_kinds_are_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"'a\.avi': name it \.mp4 or \.gif"):
        write_video(tmp_path / "a.avi", FRAMES, 20)
    assert list(tmp_path.iterdir()) == []


def test_mp4_without_its_package_names_the_line_that_installs_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(MissingPackageError, match=r"pip install 'cdqn\[video\]', or name a \.gif"):
        write_video(tmp_path / "a.mp4", FRAMES, 20)
