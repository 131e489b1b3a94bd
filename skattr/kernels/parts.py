"""Functions that only kernels call: compiled as parts of the kernels, and not by themselves.

Numba would optimise each of them and turn it into machine code too, once for each level of
functions that call one another, and nobody would run that: a third of the time of a first call.
How it links code is not documented, so this is done only with versions that the tests were run
with; with all others numba compiles as it does by default, and the results are the same.
"""

from typing import Any

import numba

KNOWN = ((0, 63), (0, 68))  # the first and the last version of numba


def linked_only() -> dict[str, Any]:
    """Return the options of numba's `njit` for functions that only kernels call."""
    version = tuple(int(part) for part in numba.__version__.split(".")[:2])
    return {"pipeline_class": _compiler()} if KNOWN[0] <= version <= KNOWN[1] else {}


def _compiler() -> Any:
    from numba.core.codegen import JITCodeLibrary
    from numba.core.compiler import Compiler

    class Part(JITCodeLibrary):
        """The code of a function, to be linked into that of a kernel."""

        def finalize(self) -> None:
            """Link in what this function calls."""
            for library in dict.fromkeys(self._linking_libraries):
                self._reload_init.update(library._reload_init)
                self._final_module.link_in(library._get_module_for_linking(), preserve=True)
            self._finalized = True

        def get_pointer_to_function(self, name: str) -> int:
            """Return 0: it cannot be called from Python."""
            self._ensure_finalized()
            return 0

        @property
        def codegen(self) -> Any:
            """Return what gets the function's environment, which there is none of."""
            return self

        def set_env(self, name: str, env: Any) -> None:
            """Leave it out: only Python objects inside of functions need it."""

    class PartCompiler(Compiler):
        """Compiles functions to parts of kernels."""

        def define_pipelines(self) -> Any:
            """Do what numba does, into such a library."""
            state = self.state
            state.library = Part(state.targetctx.codegen(), state.func_id.func_qualname)
            return super().define_pipelines()

    return PartCompiler
