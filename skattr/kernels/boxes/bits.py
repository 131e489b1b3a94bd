"""Sets of rows as bits in uint64 words, and machine instructions on them.

A path down a tree keeps a stack of such sets, stack[level, slot]. The functions take whole arrays
and indices, because a numba view costs more than many of these operations.
"""

import numpy as np
from llvmlite import ir
from numba import types

from skattr.kernels.compiled import inlined, intrinsic

ZERO = np.uint64(0)
ONE = np.uint64(1)
ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
WORD = 64


def as_words(members):
    """Return sets of rows as words, (…, words), given whether each row is a member, (…, n)."""
    *lead, n = members.shape
    packed = np.zeros((*lead, -(-n // WORD) * WORD // 8), np.uint8)
    packed[..., : -(-n // 8)] = np.packbits(members, axis=-1, bitorder="little")
    return packed.view("<u8").astype(np.uint64, copy=False)


@intrinsic(lambda word: np.uint64(int(word).bit_count()))
def popcount(typingctx, word):
    """Return the number of ones in a word."""

    def codegen(context, builder, signature, args):
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), codegen


@intrinsic(lambda word: np.uint64((int(word) & -int(word)).bit_length() - 1))
def trailing_zeros(typingctx, word):
    """Return the position of the lowest one in a word that is not 0."""

    def codegen(context, builder, signature, args):
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), codegen


@inlined
def weigh(stack, level, slot, side, row, flip, weights, equal):
    """Sum the weights of the rows in a set ∩ side[row] (or its complement, if flip is all ones).

    With `equal` every weight is weights[0], and counting is enough: it is exact in any order.
    """
    if equal:
        count = np.int64(0)
        for w in range(stack.shape[2]):
            count += np.int64(popcount(stack[level, slot, w] & (side[row, w] ^ flip)))
        return count * weights[0]
    total = 0.0
    for w in range(stack.shape[2]):
        word = stack[level, slot, w] & (side[row, w] ^ flip)
        while word != ZERO:
            total += weights[64 * w + np.int64(trailing_zeros(word))]
            word &= word - ONE
    return total


@inlined
def restrict(stack, level, slot, side, row, flip, target):
    """Put a set ∩ side[row] (or its complement) one level down; return whether any row is left."""
    any_left = ZERO
    for w in range(stack.shape[2]):
        word = stack[level, slot, w] & (side[row, w] ^ flip)
        stack[level + 1, target, w] = word
        any_left |= word
    return any_left != ZERO
