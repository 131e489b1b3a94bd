"""Files that are written whole or not at all. Imports nothing that takes time.

A file is written beside its target, as `NAME.skattr-unfinished`, and takes the target's place once
it is on the disk. Symbolic links, the mode and, where the system allows it, the owner of the target
stay what they are. A target with several hard links is overwritten in place, so that all its names
keep the same content. A process that is killed leaves its unfinished file; the next one that writes
the same target removes it.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

try:
    import fcntl
except ImportError:  # on Windows a file that is open cannot be removed
    fcntl = None  # type: ignore[assignment]

SUFFIX = ".skattr-unfinished"


def check_writable(path: str | os.PathLike) -> None:
    """Refuse a target that is not a regular file, is write-protected, or has no folder."""
    path = os.fspath(path)
    folder = os.path.dirname(os.path.realpath(path))
    if os.path.isdir(path) or not os.path.basename(path):
        raise IsADirectoryError(f"{path} is a folder: name a file in it")
    if os.path.exists(path) and not os.path.isfile(path):
        raise ValueError(f"{path} is a device, a pipe or a socket: name a regular file")
    if os.path.islink(os.path.realpath(path)):
        raise ValueError(f"{path} is a symbolic link that leads in a circle: name a file")
    if not os.path.isdir(folder):
        raise FileNotFoundError(f"there is no folder {folder}: make it first")
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"the folder {folder} cannot be written to")
    if os.path.exists(path) and not os.access(path, os.W_OK):
        raise PermissionError(f"{path} is write-protected")


@contextmanager
def whole_file(path: str | os.PathLike) -> Iterator[BinaryIO]:
    """Open a file that becomes `path` if all of it is written, and is removed if not."""
    check_writable(path)
    path = os.path.realpath(path)  # a link stays a link
    unfinished = path + SUFFIX
    try:
        with _open_alone(unfinished, 0o600 if os.path.exists(path) else 0o666) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            _put(file, unfinished, path)
    except BaseException:
        _remove_unless_held(unfinished)
        raise


def _open_alone(name: str, mode: int) -> BinaryIO:
    """Create a file and lock it; wait for a writer that holds it, and remove a stale one."""
    while True:
        try:
            file = open(name, "x+b", opener=lambda name, flags: os.open(name, flags, mode))
        except FileExistsError:
            if fcntl is None:
                os.unlink(name)
            else:
                _remove_unless_held(name, wait=True)
            continue
        try:
            if fcntl is None:
                return file
            fcntl.flock(file, fcntl.LOCK_EX)
            if _is_there(file.fileno(), name):
                return file
        except BaseException:  # an interrupt
            file.close()
            raise
        file.close()


def _remove_unless_held(name: str, wait: bool = False) -> None:
    """Remove an unfinished file, unless another writer holds it, or as soon as it does not."""
    if fcntl is None:
        with suppress(FileNotFoundError):
            os.unlink(name)
        return
    with suppress(FileNotFoundError, BlockingIOError):
        number = os.open(name, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            fcntl.flock(number, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            if _is_there(number, name):
                os.unlink(name)
        finally:
            os.close(number)


def _is_there(number: int, name: str) -> bool:
    """Return whether an open file still has its name."""
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(number), os.lstat(name))
    return False


def _put(file: BinaryIO, unfinished: str, path: str) -> None:
    """Let a file that is written take the place of its target."""
    old = os.stat(path) if os.path.exists(path) else None
    if old is not None and old.st_nlink > 1:
        _overwrite(file, path)
        _let_go(file)
        os.unlink(unfinished)
        return
    if old is not None:
        _keep_owner_and_mode(file.fileno(), old)
    _let_go(file)
    os.replace(unfinished, path)


def _let_go(file: BinaryIO) -> None:
    """Close a file where it could not be moved or removed otherwise; elsewhere it stays locked."""
    if fcntl is None:
        file.close()


def _overwrite(file: BinaryIO, path: str) -> None:
    file.seek(0)
    with open(path, "r+b") as target:
        shutil.copyfileobj(file, target)
        target.truncate()
        target.flush()
        os.fsync(target.fileno())


def _keep_owner_and_mode(number: int, old: os.stat_result) -> None:
    """Give an open file the owner, the group and the mode of another, as far as that is allowed."""
    if hasattr(os, "fchown"):  # not on Windows
        mode = stat.S_IMODE(old.st_mode)
        with suppress(PermissionError):
            os.fchown(number, old.st_uid, -1)
        try:
            os.fchown(number, -1, old.st_gid)
        except PermissionError:  # another group gets the rights of others only
            mode = mode & 0o707 | (mode & 0o007) << 3
        os.fchmod(number, mode)
