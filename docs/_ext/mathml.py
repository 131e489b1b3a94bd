"""Formulas as MathML, which browsers draw without a script and without a network."""

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.util.math import wrap_displaymath


def visit_math(translator, node: nodes.math) -> None:
    """Write a formula inside a line."""
    translator.body.append(convert(node.astext()))
    raise nodes.SkipNode


def visit_math_block(translator, node: nodes.math_block) -> None:
    """Write a formula on lines of its own."""
    latex = node.astext()
    if "\\\\" in latex and "\\begin" not in latex:
        latex = wrap_displaymath(latex, None, numbering=False)
    translator.body.append('<div class="math">' + convert(latex, display="block") + "</div>")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict:
    """Register the renderer."""
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
