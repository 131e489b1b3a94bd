"""Sets of rows or codes as bits in uint64 words, and machine instructions on them.

A path down a tree keeps a stack of sets of rows, stack[level, slot]. The functions take whole
arrays and indices, because a numba view costs more than many of these operations.
"""

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils

from skattr.kernels.compiled import inlined, intrinsic

ZERO = np.uint64(0)
ONE = np.uint64(1)
ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
WORD = 64


def as_words(members):
    """Return sets as words, (…, words), given whether each of n numbers is a member, (…, n)."""
    *lead, n = members.shape
    packed = np.zeros((*lead, -(-n // WORD) * WORD // 8), np.uint8)
    packed[..., : -(-n // 8)] = np.packbits(members, axis=-1, bitorder="little")
    return packed.view("<u8").astype(np.uint64, copy=False)


@inlined
def n_words(n):
    """Return the number of words of a set of up to n numbers."""
    return (n + 63) >> 6


@inlined
def has(sets, first, number):
    """Tell whether a set that starts at a word of `sets` has a number."""
    return (sets[first + (number >> 6)] >> np.uint64(number & 63)) & ONE != ZERO


@intrinsic(lambda word: np.uint64(int(word).bit_count()))
def popcount(typingctx, word):
    """Return the number of ones in a word."""

    def codegen(context, builder, signature, args):
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), codegen


@intrinsic(lambda word: np.uint64((int(word) & -int(word)).bit_length() - 1))
def trailing_zeros(typingctx, word):
    """Return the position of the lowest one in a word that is not 0, as an unsigned integer."""

    def codegen(context, builder, signature, args):
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), codegen


@intrinsic(lambda sums, row: None)
def prefetch(typingctx, sums, row):
    """Ask for a row of a contiguous array (n, …) that will be written soon, 64 bytes at a time."""
    if sums.layout != "C":
        raise TypeError("prefetch needs a contiguous array")

    def codegen(context, builder, signature, args):
        array = context.make_array(signature.args[0])(context, builder, args[0])
        byte, size, number = ir.IntType(8).as_pointer(), ir.IntType(64), ir.IntType(32)
        signature_of_it = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        stride = cgutils.unpack_tuple(builder, array.strides)[0]
        start = builder.bitcast(array.data, byte)
        begin = builder.mul(args[1], stride)
        call = builder.module.declare_intrinsic("llvm.prefetch", [byte], signature_of_it)
        step = ir.Constant(size, 64)
        with cgutils.for_range_slice(builder, ir.Constant(size, 0), stride, step) as (at, _):
            line = builder.gep(start, [builder.add(begin, at)])
            builder.call(call, [line, *(ir.Constant(number, n) for n in (1, 3, 1))])
        return context.get_dummy_value()

    return types.none(sums, types.int64), codegen


@inlined
def lowest(word):
    """Return the position of the lowest one in a word that is not 0."""
    return np.int64(trailing_zeros(word))


@inlined
def end_of_run(word):
    """Return the position behind the lowest run of ones in a word that is not 0."""
    above = ~(word | (word - ONE))  # the zeros above the lowest one
    return lowest(above) if above != ZERO else np.int64(64)


@inlined
def drop_run(word):
    """Return a word without its lowest run of ones."""
    end = end_of_run(word)
    return word & (ALL << np.uint64(end)) if end < 64 else ZERO


@inlined
def tail(n, w):
    """Return word w of the set of the first n numbers."""
    left = n - 64 * w
    return ALL if left >= 64 else (ONE << np.uint64(left)) - ONE


@inlined
def flip_to_fewer(sets, k, n):
    """Return all ones if sets[k] has more than half of n numbers, else 0."""
    count = np.int64(0)
    for w in range(n_words(n)):
        count += np.int64(popcount(sets[k, w]))
    return ALL if 2 * count > n else ZERO


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
            total += weights[64 * w + lowest(word)]
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
