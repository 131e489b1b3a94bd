"""Means of ReLUs of sums whose law is known (docs/mathematics.md, section 4, one hidden layer).

Normal sums: E max(0, N(m, s²)) = m Φ(m/s) + s φ(m/s). Sums S = c + Σ_k a_k U_k of uniform numbers
on (-1, 1): max(0, c) if |c| >= A = Σ|a_k|, else (c + E|S|) / 2, where |S| <= T = 2 A lets E|S| be
that of a periodic function,

    E|S| = T/2 - (4 T / π²) Σ_{n odd} cos(n π c / T) / n² · ∏_k sin(n π a_k / T) / (n π a_k / T).

The series is exact; only its tail, which is bounded, is left out. One and two a_k, for which it
converges slowly, have closed forms without cancellation.
"""

import math

import numpy as np

from skattr.kernels.compiled import called, inlined, kernel

FAR = 9.0  # standard deviations beyond which the ReLU of a normal number is 0 or itself
STEPS = 8  # intervals in a standard deviation
TOLERANCE = 1e-12  # of A: what a series may leave out
CHUNK = 256  # terms by which a series grows


def _taylor():
    """Return the Taylor coefficients of g(z) = z Φ(z) + φ(z) at the middles of intervals.

    g' = Φ, g'' = φ, and further derivatives are Hermite polynomials times φ. The term left out is
    below 1e-17. Twice as fast as erfc and exp, which dominates the cost of a value.
    """
    z = (np.arange(int(2 * FAR * STEPS)) + 0.5) / STEPS - FAR
    density = np.exp(-z * z / 2) / np.sqrt(2 * np.pi)
    below = np.array([0.5 * math.erfc(-each / math.sqrt(2.0)) for each in z])
    terms, factorial, hermite, before = [z * below + density, below], 1.0, np.ones_like(z), 0 * z
    for k in range(2, 11):
        factorial *= k
        terms.append((-1) ** k * hermite * density / factorial)
        hermite, before = z * hermite - (k - 2) * before, hermite
    return np.stack(terms, axis=1)


TAYLOR = _taylor()  # (n_intervals, 11)


@called
def normal_mean(m, s, taylor):
    """Return E max(0, N(m, s²)) = s g(m / s)."""
    if not abs(m) < FAR * s:  # also where m is not finite
        return m if not m < 0.0 else 0.0
    z = m / s
    k = int((z + FAR) * STEPS)
    k = k if k < taylor.shape[0] else taylor.shape[0] - 1
    h = z - ((k + 0.5) / STEPS - FAR)
    value = taylor[k, 10]
    for i in range(9, -1, -1):
        value = value * h + taylor[k, i]
    return s * value


def add_normal(t, shares, constants, centers, slopes, scales, slope, weight, out):
    """Add Σ_c shares[i, c] Σ_u weight[o, u] · (mean activation of unit u) to out[i, o].

    In component c unit u is normal with the mean constants[c, u] + slopes[c, u] · (t_i -
    centers[c]) and the standard deviation scales[c, u].
    """
    _add_normal(t, shares, constants, centers, slopes, scales, slope, weight, out, TAYLOR)


@kernel
def _add_normal(t, shares, constants, centers, slopes, scales, slope, weight, out, taylor):
    n_components, n_units = constants.shape
    for i in range(t.shape[0]):
        for c in range(n_components):
            share = shares[i, c]
            if share == 0.0:
                continue
            for u in range(n_units):
                mean = constants[c, u]
                for q in range(t.shape[1]):
                    mean += slopes[c, u, q] * (t[i, q] - centers[c, q])
                value = slope[u] * mean
                if slope[u] != 1.0:
                    value += (1.0 - slope[u]) * normal_mean(mean, scales[c, u], taylor)
                value *= share
                for o in range(out.shape[1]):
                    out[i, o] += weight[o, u] * value


def uniform_means(constants, sides, out):
    """Fill out[i] with E max(0, constants[i] + Σ_k sides[k] U_k); returns a bound on the error."""
    a = np.sort(np.abs(sides[sides != 0.0]))[::-1].copy()
    whole = float(a.sum())
    size, error = _few(a, TOLERANCE * whole)
    a = a[:size]
    series = np.empty(CHUNK)
    n = 0
    if size > 2:
        n, tail = _fill_series(a, float(a.sum()), series)
        while n < 0:
            series = np.empty(2 * len(series))
            n, tail = _fill_series(a, float(a.sum()), series)
        error += tail
    _fill_means(constants, a, whole, float(a.sum()), series[:n], out)
    return error


@kernel
def _fill_means(constants, a, whole, total, series, out):
    size = a.shape[0]
    for i in range(constants.shape[0]):
        c = constants[i]
        if not abs(c) < whole:  # also NaN
            out[i] = c if not c < 0.0 else 0.0
        elif size == 1:
            out[i] = _one(c, a[0])
        elif size == 2:
            out[i] = _two(c, a[0], a[1])
        elif abs(c) >= total:
            out[i] = c if c > 0.0 else 0.0
        else:
            out[i] = (c + _mean_size(c, total, series)) / 2


def _few(a, allowed):
    """Return how many of the descending a_k count, and how much the others may change.

    Without a_k the mean changes by at most a_k² / 6 times the largest density, 1 / (2 a_0).
    """
    size, change = a.shape[0], 0.0
    while size > 1:
        more = a[size - 1] * a[size - 1] / (12.0 * a[0])
        if change + more > allowed:
            break
        change += more
        size -= 1
    return size, change


@inlined
def _one(c, a):
    """Return the mean of max(0, c + a U)."""
    if abs(c) >= a:
        return c if c > 0.0 else 0.0
    return (c + a) * (c + a) / (4.0 * a)


@inlined
def _two(c, a, b):
    """Return the mean of max(0, c + a U + b V), a >= b: of _one over an interval, by its pieces."""
    total = 0.0
    begin = -1.0
    for piece in range(3):
        end = 1.0 if piece == 2 else ((2 * piece - 1) * a - c) / b
        end = -1.0 if end < -1.0 else 1.0 if end > 1.0 else end
        middle, half = (begin + end) / 2, (end - begin) / 2
        for node in range(2):  # two nodes are exact on polynomials of degree 3
            t = middle + (2 * node - 1) * half / math.sqrt(3.0)
            total += half * _one(c + b * t, a)
        begin = end
    return total / 2


@kernel
def _fill_series(a, total, series):
    """Fill in the coefficients of cos(n π c / T) for n = 1, 3, 5 and so on.

    Returns their number, or -1 if the buffer is too small, and a bound on what is left out.
    """
    period = 2.0 * total
    factor = 4.0 * period / (math.pi * math.pi)
    for size in range(series.shape[0]):
        n = 2 * size + 1
        term, bound, power = factor / (n * n), factor / 2, 0
        for k in range(a.shape[0]):
            x = n * math.pi * a[k] / period
            term *= math.sin(x) / x
            if x > 1.0:
                bound /= x
                power += 1
        series[size] = term
        # Σ_{odd m > n} m^-(2 + power) <= n^-(1 + power) / (2 (1 + power)), x ~ m; half goes into E
        tail = bound / (2.0 * n * (1 + power))
        if tail <= TOLERANCE * total:
            return size + 1, tail
    return -1, 0.0


@inlined
def _mean_size(c, total, series):
    """Return E|S|."""
    angle = math.pi * c / (2.0 * total)
    cosine, sine = math.cos(angle), math.sin(angle)
    turn, across = math.cos(2 * angle), math.sin(2 * angle)
    result = total  # T / 2
    for i in range(series.shape[0]):
        result -= series[i] * cosine
        cosine, sine = cosine * turn - sine * across, sine * turn + cosine * across
    return result
