"""Compiling functions that only kernels call as parts of the kernels, not by themselves.

By default numba also optimises each of them and compiles it to machine code that never runs, once
for each level of calls: a third of the time of a first call. How numba links code is not
documented, so this is done only with versions that were tested; with all others numba compiles as
it does by default, with the same results.
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
            """Return 0, as it cannot be called from Python."""
            self._ensure_finalized()
            return 0

        @property
        def codegen(self) -> Any:
            """Return this library, which receives the environment and ignores it."""
            return self

        def set_env(self, name: str, env: Any) -> None:
            """Ignore the environment: only Python objects inside functions need it."""

    class PartCompiler(Compiler):
        """Compiles functions to parts of kernels."""

        def define_pipelines(self) -> Any:
            """Use the default pipelines, with a Part as library."""
            state = self.state
            state.library = Part(state.targetctx.codegen(), state.func_id.func_qualname)
            return super().define_pipelines()

    return PartCompiler
