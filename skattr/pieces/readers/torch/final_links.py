"""The last function of a torch module, if it is a link: sigmoid, softmax, log softmax or exp."""

from __future__ import annotations

from typing import Any

from skattr.pieces.links import EXP, LOG_SOFTMAX, LOGISTIC, SOFTMAX, SOFTPLUS, Link

LINKS: dict[str, Link] = {
    "Sigmoid": LOGISTIC, "sigmoid": LOGISTIC, "Softmax": SOFTMAX, "softmax": SOFTMAX,
    "LogSoftmax": LOG_SOFTMAX, "log_softmax": LOG_SOFTMAX, "exp": EXP, "Softplus": SOFTPLUS,
}  # fmt: skip
VIEWS = ("squeeze", "flatten", "view", "reshape", "Flatten")  # they commute with functions


def final_link(module: Any, graph: Any) -> tuple[Any, Link] | None:
    """Return the node of the last function, and the Link that it is, if it is one.

    A softmax must be over the outputs of a row, and softplus the standard one.
    """
    (output,) = (node for node in graph.nodes if node.op == "output")
    node = output.args[0]
    viewed = False
    while getattr(node, "op", "") in ("call_function", "call_method", "call_module"):
        name = _name(module, node)
        link = LINKS.get(name)
        if link is not None and len(node.users) == 1:
            over_all = link in (SOFTMAX, LOG_SOFTMAX)
            if over_all and (viewed or _dim(module, node) not in (1, -1)):
                return None
            if link is SOFTPLUS and not _is_plain_softplus(module, node):
                return None
            return node, link
        if name not in VIEWS or len(node.users) != 1:
            return None
        viewed, node = True, node.args[0]
    return None


def _name(module: Any, node: Any) -> str:
    if node.op != "call_module":
        return str(getattr(node.target, "__name__", node.target))
    import torch

    layer = module.get_submodule(node.target)
    name = type(layer).__name__
    return name if getattr(torch.nn, name, None) is type(layer) else ""


def _dim(module: Any, node: Any) -> Any:
    """Return the dimension of a softmax."""
    if node.op == "call_module":
        return module.get_submodule(node.target).dim
    return node.kwargs.get("dim", node.args[1] if len(node.args) > 1 else None)


def _is_plain_softplus(module: Any, node: Any) -> bool:
    layer = module.get_submodule(node.target)
    return layer.beta == 1.0
