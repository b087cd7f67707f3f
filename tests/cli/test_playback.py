"""`cdqn play`: episodes as videos."""

from pathlib import Path

from cdqn.cli.main import main


def test_play_writes_videos(finished_run, here):
    from PIL import Image

    assert main(["play", str(finished_run), "--video", "out.gif"]) == 0
    with Image.open("out.gif") as video:
        assert video.n_frames > 5
    assert main(["play", str(finished_run), "--video", "out.mp4"]) == 0
    assert Path("out.mp4").read_bytes()[4:8] == b"ftyp"


def test_play_cuts_an_episode_off(finished_run, here, capsys):
    assert main(["play", str(finished_run), "--video", "short.gif", "--max-steps", "3"]) == 0
    assert capsys.readouterr().out.startswith("return: 3\n")
    assert main(["play", str(finished_run), "--video", "short.gif", "--max-steps", "0"]) == 1
    assert "max_steps is 0" in capsys.readouterr().err
