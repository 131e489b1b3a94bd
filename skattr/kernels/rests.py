"""What sums, products and exponentials lose to rounding, as a number of its own.

Ogita, Rump and Oishi, Accurate sum and dot product (2005), for sums and products; the exponential
is 2^(n / 32) from a table of more digits times that of a small number.
"""

import math
from decimal import Decimal, localcontext

import numpy as np
from numba import types

from skattr.kernels.compiled import inlined, intrinsic

SPLITTER = 134217729.0  # 2^27 + 1


def _in_two(number: Decimal) -> tuple[float, float]:
    """Return a number as a float and what is left."""
    return float(number), float(number - Decimal(float(number)))


with localcontext(prec=50):
    _powers = [_in_two(Decimal(2) ** (Decimal(j) / 32)) for j in range(32)]
    _step = Decimal(2).ln() / 32
    STEP = float(int(_step * 2**40)) / 2**40  # so short that multiples of it are exact
    REST_OF_STEP = float(_step - Decimal(STEP))
POWERS, RESTS_OF_POWERS = np.array(_powers).T.copy()  # 2^(j / 32)


@inlined
def rest_of_sum(a, b, total):
    """Return a + b - total without rounding, total being a + b rounded."""
    part = total - a
    return (a - (total - part)) + (b - part)


def _in_halves(a):
    """Return two numbers of 26 bits whose sum is a."""
    far = SPLITTER * a
    upper = far - (far - a)
    return upper, a - upper


def _rest_of_product(a, b, product):
    (upper, lower), (other, last) = _in_halves(a), _in_halves(b)
    return ((upper * other - product) + (upper * last + lower * other)) + lower * last


@intrinsic(_rest_of_product)
def rest_of_product(typingctx, a, b, product):
    """Return a b - product without rounding, product being a b rounded."""

    def codegen(context, builder, signature, args):
        return builder.fma(args[0], args[1], builder.fneg(args[2]))

    return types.float64(types.float64, types.float64, types.float64), codegen


@inlined
def exponential(y):
    """Return exp(y) rounded, and a rest: it is the first times 1 + the second.

    With y = n log(2) / 32 + t, exp(y) is 2^(n / 32) (1 + q), q = exp(t) - 1. As |t| is below 0.011,
    the rounding errors of t and q are far below that of the sum, which is kept.
    """
    if not -700.0 < y < 700.0:
        return math.exp(y), 0.0
    n = math.floor(y / (STEP + REST_OF_STEP) + 0.5)
    t = (y - n * STEP) - n * REST_OF_STEP
    q = 1.0 / 5040.0
    for factorial in (720.0, 120.0, 24.0, 6.0, 2.0, 1.0):
        q = 1.0 / factorial + t * q
    q *= t
    power = POWERS[int(n) & 31]
    more = power * q
    total = power + more
    rest = ((power - total) + more) + RESTS_OF_POWERS[int(n) & 31]
    return math.ldexp(total, int(n) >> 5), rest / total
