"""Text of a report: labels and raw values made safe, a measure in words and as a formula."""

from __future__ import annotations

from typing import Any

from skattr._utils.numbers import raw
from skattr.measures import Measure
from skattr.measures.base import as_terms

LONGEST = 120  # the most characters of a label that are shown

MEASURES: dict[str, tuple[str, str]] = {  # class -> (the attribution is …, formula)
    "PartialDependence": (
        "the mean of f over the background, with the row's own value put into every row",
        "E f(xⱼ, X₋ⱼ)",
    ),
    "ProductMarginal": (
        "the mean of f with the row's own value, as if the other columns were independent",
        "E f(xⱼ, X⊥₋ⱼ)",
    ),
    "Conditional": (
        "the mean of f over rows like those that have the row's own value",
        "E[f(X) | Xⱼ = xⱼ]",
    ),
    "Uniform": (
        "the mean of f with the row's own value and the other columns uniform on the domain",
        "E f(xⱼ, U₋ⱼ)",
    ),
    "Coefficient": (
        "twice the mean of f along the column's side of the domain, the others at their lowest",
        "2 E f(Uⱼ, l₋ⱼ)",
    ),
    "ScaledCoefficient": (
        "f with the row's own value and the other columns at their lowest",
        "f(xⱼ, l₋ⱼ)",
    ),
    "Shapley": (
        "the mean difference that the row's own value makes when its values are put in one after "
        "the other, in all orders",
        "E[v(S ∪ j) − v(S)], S the columns before j in a random order",
    ),
    "Banzhaf": (
        "the mean difference that the row's own value makes to all sets of its other values",
        "E[v(S ∪ j) − v(S)], S a random set of other columns",
    ),
    "ALE": (
        "the mean changes of f over the rows in each bin of the column, added up to the row's own "
        "value and centred",
        "Σ E[f(bⱼ, X₋ⱼ) − f(aⱼ, X₋ⱼ) | aⱼ < Xⱼ ≤ bⱼ] − its mean, over the bins (aⱼ, bⱼ] up to xⱼ",
    ),
    "Removal": (
        "the prediction less the mean of f with the row's own value replaced by those of the "
        "background",
        "f(x) − E f(Xⱼ, x₋ⱼ)",
    ),
    "MarginalEffect": (
        "the change of f per unit of the column, between h below and h above the row's own value",
        "(f(xⱼ + h, x₋ⱼ) − f(xⱼ − h, x₋ⱼ)) / 2h",
    ),
    "Stieltjes": ("the integral of f against an integrand of the user's own", "∫ f dgⱼ,ₓ"),
    "Density": ("the integral of f times a density of the user's own", "∫ f hⱼ,ₓ dy"),
    "Sampler": ("the mean of f over points that a function of the user's own draws", "E f(Yⱼ,ₓ)"),
    "Atoms": ("a weighted sum of f at points of the user's own", "Σₐ wⱼₐ f(pₐ)"),
    "Dirac": ("the prediction itself", "f(x)"),
    "Baseline": ("the prediction at one fixed point p", "f(p)"),
}
_AS_SET = ("the row's own value", "these values")  # of a measure that coalitions are made of
EXPECTATIONS: dict[str, tuple[str, str]] = {  # law -> the same
    "joint": ("the mean of f over the background", "E f(X)"),
    "product": ("the mean of f, as if all columns were independent", "E f(X⊥)"),
    "uniform": ("the mean of f over the domain", "E f(U)"),
    "corner": ("f at the lower corner l of the domain", "f(l)"),
}


def shown(label: Any, longest: int = LONGEST) -> str:
    """Return a label as one line of text that every browser can show.

    Control characters (including those that change the direction of text) and lone surrogates
    become symbols; the middle of a long text is left out.
    """
    text = str(label)
    if len(text) > longest:
        text = f"{text[: longest - 21]}…{text[-20:]}"
    return "".join(_visible(letter) for letter in text)


def _visible(letter: str) -> str:
    code = ord(letter)
    if code < 32:
        return chr(0x2400 + code)  # the Unicode pictures of control characters
    turns = code in (0x61C, 0x200E, 0x200F, 0xFEFF) or 0x202A <= code <= 0x202E
    if turns or 127 <= code < 160 or 0x2028 <= code <= 0x2029 or 0x2066 <= code <= 0x2069:
        return "\N{SYMBOL FOR SUBSTITUTE FORM TWO}"
    return (
        "\N{REPLACEMENT CHARACTER}"
        if 0xD800 <= code < 0xE000 or code & 0xFFFE == 0xFFFE
        else letter
    )


def shown_value(value: Any) -> str:
    """Return a raw value as text; the word "missing" is in quotes."""
    if isinstance(value, tuple):  # of a group
        return shown(", ".join(shown_value(part) for part in value))
    if isinstance(value, str) and value == "missing":
        return repr(value)
    return shown(raw(value, digits=6, minus="-"), 60)


def measure_in_words(measure: Measure) -> tuple[list[str], str]:
    """Return one sentence for each term of a measure, and the formula of the attribution."""
    sentences: list[str] = []
    symbols = []
    for coefficient, term in as_terms(measure):
        words, symbol = _term(term)
        sign = (
            "" if not sentences and coefficient >= 0 else ("minus " if coefficient < 0 else "plus ")
        )
        times = "" if abs(coefficient) == 1 else f"{abs(coefficient):g} times "
        sentences.append(f"{sign}{times}{words}")
        symbols.append((coefficient, symbol))
    return sentences, f"φⱼ(x) = ∫ f dμⱼ,ₓ = {_sum(symbols, '−', '·')}"


def measure_text(measure: Measure, include_data: bool) -> str:
    """Return a measure as Python code; without data, parameters that may hold data are left out."""
    if include_data:
        return repr(measure)
    return _sum([(coefficient, _private(term)) for coefficient, term in as_terms(measure)])


def _sum(terms: list[tuple[float, str]], minus: str = "-", times: str = "*") -> str:
    text = ""
    for coefficient, symbol in terms:
        sign = minus if coefficient < 0 else "+"
        lead = f" {sign} " if text else sign.replace("+", "")
        size = "" if abs(coefficient) == 1 else f"{abs(coefficient):g} {times} "
        text += f"{lead}{size}{symbol}"
    return text


def _private(measure: Measure) -> str:
    """Return a measure as code, with its parameters only if these are settings, not data."""
    name = type(measure).__name__
    settings = (str, int, float, type(None), Measure)  # parameters of inner measures are among them
    plain = all(isinstance(v, settings) for v in measure.get_params().values())
    own_point = name in ("Baseline", "Atoms", "Stieltjes", "Density", "Sampler")
    known = (name in MEASURES and not own_point) or name == "Expectation"
    return repr(measure) if known and plain else f"{name}(...)"


def _term(measure: Measure) -> tuple[str, str]:
    name = type(measure).__name__
    if name == "Expectation":
        return EXPECTATIONS[measure.get_params()["law"]]
    if name in MEASURES:
        words, symbol = MEASURES[name]
        inner = measure.get_params(deep=False).get("measure")
        if isinstance(inner, Measure):  # of coalitions
            words += f"; a set of values is worth {_term(inner)[0].replace(*_AS_SET)}"
        return words, symbol
    first = (type(measure).__doc__ or name).strip().splitlines()[0].rstrip(".")
    return first, f"∫ f d{name}"
