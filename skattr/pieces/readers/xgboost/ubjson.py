"""Universal Binary JSON, the format in which XGBoost saves its models."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

# numbers are big-endian
NUMBERS = {"i": ">b", "U": ">B", "I": ">h", "l": ">i", "L": ">q", "d": ">f", "D": ">d"}
FORMATS = {marker: struct.Struct(form) for marker, form in NUMBERS.items()}
CONSTANTS = {"T": True, "F": False, "Z": None}


class Parser:
    """A parser; arrays of numbers of one type become numpy arrays."""

    def __init__(self, text: bytes) -> None:
        self.text = text
        self.at = 0

    def value(self) -> Any:
        """Read the next value."""
        marker = self._marker()
        if marker == "{":
            return self._object()
        if marker == "[":
            return self._array()
        if marker == "S":
            return self._string()
        if marker in CONSTANTS:
            return CONSTANTS[marker]
        return self._number(marker)

    def _marker(self) -> str:
        self.at += 1
        return chr(self.text[self.at - 1])

    def _peek(self, marker: bytes) -> bool:
        if self.text[self.at] != marker[0]:
            return False
        self.at += 1
        return True

    def _number(self, marker: str) -> Any:
        form = FORMATS[marker]
        self.at += form.size
        return form.unpack_from(self.text, self.at - form.size)[0]

    def _string(self) -> str:
        length = self._number(self._marker())
        self.at += length
        return self.text[self.at - length : self.at].decode()

    def _object(self) -> dict:
        result = {}
        while not self._peek(b"}"):
            name = self._string()
            result[name] = self.value()
        return result

    def _array(self) -> Any:
        kind = self._marker() if self._peek(b"$") else None
        if not self._peek(b"#"):
            values = []
            while not self._peek(b"]"):
                values.append(self.value())
            return values
        length = self._number(self._marker())
        if kind is None:
            return [self.value() for _ in range(length)]
        array = np.frombuffer(self.text, NUMBERS[kind], length, self.at)
        self.at += array.nbytes
        return array.astype(array.dtype.newbyteorder("="))
