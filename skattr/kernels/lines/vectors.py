"""Eight numbers at once, as the machine's own vectors: what kernels compute with, like floats.

Loops over arrays become vectors by themselves only where the compiler can prove, or check each time
the loop starts, that the arrays do not overlap; short loops pay more for that than they win. LLVM
splits eight numbers into as many registers as the machine needs. Positions are counted in
the whole array, which is contiguous, and are not checked.
"""

import math

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import models, register_model

from skattr.kernels.compiled import intrinsic

WIDTH = 8
NUMBERS = ir.VectorType(ir.DoubleType(), WIDTH)
WORDS = ir.VectorType(ir.IntType(64), WIDTH)
FUSED = ("contract",)  # a product and a sum may be rounded together
INDEX = ir.IntType(32)


class Vector(types.Type):
    """Eight float64 in registers."""

    def __init__(self):
        super().__init__(name="Vector")


vector = Vector()


@register_model(Vector)
class VectorModel(models.PrimitiveModel):
    """What a vector is to LLVM."""

    def __init__(self, manager, frontend):
        super().__init__(manager, frontend, NUMBERS)


def aligned(size):
    """Return an array that begins with a line of the cache: no vector of it is on two of them."""
    return _from_line(np.empty(size + WIDTH))


def aligned_zeros(*shape):
    """Return an array of zeros that begins with a line of the cache."""
    return _from_line(np.zeros(math.prod(shape) + WIDTH)).reshape(shape)


def _from_line(numbers):
    """Return all but eight numbers of an array, from where a line of the cache begins."""
    begin = -(numbers.ctypes.data // numbers.itemsize) % WIDTH
    return numbers[begin : begin + len(numbers) - WIDTH]


def _check(array):
    """Refuse arrays in which positions cannot be counted."""
    if array.dtype != types.float64 or array.layout != "C":
        raise TypingError(f"vectors are parts of contiguous arrays of float64, not of {array}")


def _pointer(context, builder, signature, args):
    """Return where in an array eight numbers begin."""
    array = context.make_array(signature.args[0])(context, builder, args[0])
    return builder.bitcast(builder.gep(array.data, [args[1]]), NUMBERS.as_pointer())


def _store(array, at, numbers):
    array.reshape(-1)[at : at + WIDTH] = numbers


def _words(numbers):
    return numbers.view(np.int64)


def _word(bits):
    return np.uint64(np.packbits(bits, bitorder="little")[0])


def _total(numbers):
    while len(numbers) > 1:
        numbers = numbers[: len(numbers) // 2] + numbers[len(numbers) // 2 :]
    return numbers[0]


@intrinsic(lambda array, at: array.reshape(-1)[at : at + WIDTH].copy())
def load(typingctx, array, at):
    """Return eight numbers of an array, from a position on."""

    def codegen(context, builder, signature, args):
        return builder.load(_pointer(context, builder, signature, args), align=8)

    _check(array)
    return vector(array, types.intp), codegen


@intrinsic(_store)
def store(typingctx, array, at, numbers):
    """Put eight numbers into an array, from a position on."""

    def codegen(context, builder, signature, args):
        builder.store(args[2], _pointer(context, builder, signature, args), align=8)
        return context.get_dummy_value()

    _check(array)
    return types.void(array, types.intp, vector), codegen


@intrinsic(lambda array, at: array.reshape(-1)[at])
def number(typingctx, array, at):
    """Return one number of an array. Unlike array[at] it takes no time to look for -1."""

    def codegen(context, builder, signature, args):
        array = context.make_array(signature.args[0])(context, builder, args[0])
        return builder.load(builder.gep(array.data, [args[1]]))

    _check(array)
    return types.float64(array, types.intp), codegen


def _put(array, at, number):
    array.reshape(-1)[at] = number


@intrinsic(_put)
def put(typingctx, array, at, number):
    """Put one number into an array, as `number` takes one out of it."""

    def codegen(context, builder, signature, args):
        array = context.make_array(signature.args[0])(context, builder, args[0])
        builder.store(args[2], builder.gep(array.data, [args[1]]))
        return context.get_dummy_value()

    _check(array)
    return types.void(array, types.intp, types.float64), codegen


@intrinsic(lambda a, b: (_words(a) & _words(b)).view(np.float64))
def common(typingctx, a, b):
    """Return the bits that two vectors have in common. As numbers they mean nothing."""

    def codegen(context, builder, signature, args):
        a, b = (builder.bitcast(numbers, WORDS) for numbers in args)
        return builder.bitcast(builder.and_(a, b), NUMBERS)

    return vector(vector, vector), codegen


@intrinsic(lambda number: np.full(WIDTH, number))
def spread(typingctx, number):
    """Return a number eight times."""

    def codegen(context, builder, signature, args):
        first = builder.insert_element(NUMBERS(ir.Undefined), args[0], INDEX(0))
        return builder.shuffle_vector(first, first, ir.VectorType(INDEX, WIDTH)([0] * WIDTH))

    return vector(types.float64), codegen


@intrinsic(lambda a, b: a * b)
def times(typingctx, a, b):
    """Return a · b."""

    def codegen(context, builder, signature, args):
        return builder.fmul(*args)

    return vector(vector, vector), codegen


@intrinsic(lambda a, b, c: a * b + c)
def times_plus(typingctx, a, b, c):
    """Return a · b + c, of vectors or of numbers, rounded once where the machine can."""

    def codegen(context, builder, signature, args):
        a, b, c = args
        return builder.fadd(builder.fmul(a, b, flags=FUSED), c, flags=FUSED)

    kind = a if isinstance(a, Vector) else types.float64
    return kind(kind, kind, kind), codegen


@intrinsic(lambda test, a, b: np.where(test < 0.0, a, b))
def choose(typingctx, test, a, b):
    """Return a where the test is below 0, else b."""

    def codegen(context, builder, signature, args):
        below = builder.fcmp_ordered("<", args[0], NUMBERS(None))
        return builder.select(below, *args[1:])

    return vector(vector, vector, vector), codegen


@intrinsic(lambda a, b: np.where(a == 0.0, b, a))
def unless_zero(typingctx, a, b):
    """Return a, or b where a is 0."""

    def codegen(context, builder, signature, args):
        return builder.select(builder.fcmp_ordered("==", args[0], NUMBERS(None)), args[1], args[0])

    return vector(vector, vector), codegen


@intrinsic(lambda before, a, b: (_words(before) | (_words(a) ^ _words(b))).view(np.float64))
def differ(typingctx, before, a, b):
    """Return a vector with the sign bits of `before`, and those where the signs of a and b differ.

    As numbers they mean nothing.
    """

    def codegen(context, builder, signature, args):
        before, a, b = (builder.bitcast(numbers, WORDS) for numbers in args)
        return builder.bitcast(builder.or_(before, builder.xor(a, b)), NUMBERS)

    return vector(vector, vector, vector), codegen


@intrinsic(lambda numbers: _word(np.signbit(numbers)))
def signs(typingctx, numbers):
    """Return a word whose bit i is the sign bit of number i."""

    def codegen(context, builder, signature, args):
        below = builder.icmp_signed("<", builder.bitcast(args[0], WORDS), WORDS(None))
        return builder.zext(builder.bitcast(below, ir.IntType(WIDTH)), ir.IntType(64))

    return types.uint64(vector), codegen


@intrinsic(lambda numbers: _word(numbers != 0.0))
def nonzero(typingctx, numbers):
    """Return a word whose bit i tells whether number i is not 0."""

    def codegen(context, builder, signature, args):
        some = builder.fcmp_unordered("!=", args[0], NUMBERS(None))
        return builder.zext(builder.bitcast(some, ir.IntType(WIDTH)), ir.IntType(64))

    return types.uint64(vector), codegen


def _add_common(counts, a, b, flip):
    both = _words(a).view(np.uint64) & (_words(b).view(np.uint64) ^ flip)
    return (_words(counts) + [int(word).bit_count() for word in both]).view(np.float64)


@intrinsic(_add_common)
def add_common(typingctx, counts, a, b, flip):
    """Add to counts the numbers of bits that words of a have in common with those of b ^ flip.

    Words and counts are bits of vectors, which mean nothing as numbers: see `counted`.
    """

    def codegen(context, builder, signature, args):
        counts, a, b = (builder.bitcast(numbers, WORDS) for numbers in args[:3])
        first = builder.insert_element(WORDS(ir.Undefined), args[3], INDEX(0))
        flip = builder.shuffle_vector(first, first, ir.VectorType(INDEX, WIDTH)([0] * WIDTH))
        kind = ir.FunctionType(WORDS, [WORDS])
        ones = cgutils.get_or_insert_function(builder.module, kind, f"llvm.ctpop.v{WIDTH}i64")
        found = builder.call(ones, [builder.and_(a, builder.xor(b, flip))])
        return builder.bitcast(builder.add(counts, found), NUMBERS)

    return vector(vector, vector, vector, types.uint64), codegen


@intrinsic(lambda counts: _words(counts).astype(np.float64))
def counted(typingctx, counts):
    """Return the counts of `add_common` as numbers."""

    def codegen(context, builder, signature, args):
        return builder.sitofp(builder.bitcast(args[0], WORDS), NUMBERS)

    return vector(vector), codegen


@intrinsic(_total)
def total(typingctx, numbers):
    """Return the sum of eight numbers."""

    def codegen(context, builder, signature, args):
        rest, half = args[0], WIDTH // 2
        while half:
            kind = ir.VectorType(INDEX, half)
            lower = builder.shuffle_vector(rest, rest, kind(list(range(half))))
            upper = builder.shuffle_vector(rest, rest, kind(list(range(half, 2 * half))))
            rest, half = builder.fadd(lower, upper), half // 2
        return builder.extract_element(rest, INDEX(0))

    return types.float64(vector), codegen
