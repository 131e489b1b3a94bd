"""Arrays of an .npz file, which are looked at before they are read.

`np.load` allocates what a member claims to hold. Here a file is refused, without reading on, if it
has a member that is not asked for, twice or compressed, or whose header claims another size than
its bytes have; so reading takes no more memory than the file is long. zipfile compares checksums.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from math import prod
from typing import Any, BinaryIO
from zipfile import ZIP_STORED, ZipFile, ZipInfo

import numpy as np
from numpy.lib import format as npy

MAGIC = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


class Archive:
    """An open .npz file whose list of members has been checked.

    Parameters
    ----------
    file : binary file
    may_have : callable
        Whether there may be an array of this name.
    """

    def __init__(self, file: BinaryIO, may_have: Callable[[str], bool]) -> None:
        self._zip = ZipFile(file)
        infos = self._zip.infolist()
        names = [info.filename.removesuffix(".npy") for info in infos]
        for info, name in zip(infos, names, strict=True):
            if not info.filename.endswith(".npy") or not may_have(name):
                raise ValueError(f"it has a member {info.filename[:100]!r}")
            if names.count(name) > 1:
                raise ValueError(f"it has two members {info.filename!r}")
            if info.compress_type != ZIP_STORED or info.file_size != info.compress_size:
                raise ValueError(f"its member {info.filename!r} is compressed")
        if sum(info.file_size for info in infos) > os.fstat(file.fileno()).st_size:
            raise ValueError("its members are larger than the file")
        self._infos = dict(zip(names, infos, strict=True))

    @property
    def names(self) -> list[str]:
        """The names of the arrays."""
        return list(self._infos)

    def read(self, name: str) -> np.ndarray:
        """Return an array, whose header must fit its bytes."""
        info = self._infos[name]
        _check_size(self._zip, info)
        with self._zip.open(info) as member:
            array: np.ndarray = npy.read_array(member, allow_pickle=False)
            member.read()  # to the end, where the checksum is compared
        return array


def _check_size(archive: ZipFile, info: ZipInfo) -> None:
    with archive.open(info) as member:
        read_header: Any = MAGIC.get(npy.read_magic(member))
        if read_header is None:
            raise ValueError(f"its member {info.filename!r} has an unknown version")
        shape, _, dtype = read_header(member)
        size = prod(shape) * dtype.itemsize
        if dtype.hasobject or min(shape, default=1) < 0 or member.tell() + size != info.file_size:
            raise ValueError(f"its member {info.filename!r} does not have the size that it claims")
