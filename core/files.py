"""Files are written whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

from .errors import OutputError


def write_whole(path: str | Path, content: bytes) -> None:
    """Writes a file beside its place and moves it there, so that nobody ever finds a part of it. Raises OutputError.

    A pipe or a device is written into: a file in its place would be no such thing any more.
    """
    place = Path(path)
    try:
        target = place.resolve()
        if target.exists() and not target.is_file():
            with open(target, "wb", buffering=0) as device:
                device.write(content)
            return
        draft = target.with_name(f".{target.name[:80]}.{os.getpid()}.part")
        try:
            with open(draft, "xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(draft, target)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise OutputError(f"{place}: {(error.strerror or str(error)).lower()}") from None
