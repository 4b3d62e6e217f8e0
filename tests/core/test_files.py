"""Files are written whole; what is no file stays what it is."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from threading import Thread

import pytest

from triledger.core.errors import OutputError
from triledger.core.files import write_whole


def test_a_file_is_replaced_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    place = tmp_path / "plan.yaml"
    place.write_text("before")
    write_whole(place, b"after")
    assert place.read_bytes() == b"after"
    assert list(tmp_path.iterdir()) == [place]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_is_written_into_and_stays_a_pipe(tmp_path: Path) -> None:
    pipe, read = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    write_whole(pipe, b"chart")
    reader.join()
    assert read == [b"chart"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_folder_is_named_as_one(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="is a directory"):
        write_whole(tmp_path, b"")
