"""Compiling kernels with what they need of numba, and what only they call as parts of them.

By default numba also optimises each function that kernels call and compiles it to machine code that
never runs, once for each level of calls: a third of the time of a first call. What else is left out
here takes a tenth each: passes for what no kernel has, comparing options with each other,
optimising each function as thoroughly as the kernel that it becomes a part of, and optimising the
wrapper that reads Python's arguments. How numba compiles is not documented, so this is done only
with versions that were tested; with all others numba compiles as it does by default, with the same
results.
"""

from typing import Any

import numba

KNOWN = ((0, 63), (0, 68))  # the first and the last version of numba
UNUSED = {  # passes for what no kernel has: closures, inlined overloads, sums of whole arrays
    "WithLifting",
    "InlineClosureLikes",
    "RewriteDynamicRaises",
    "MakeFunctionToJitFunction",
    "InlineInlinables",
    "FindLiterallyCalls",
    "LiteralUnroll",
    "LiteralPropagationSubPipelinePass",
    "InlineOverloads",
    "NopythonRewrites",
    "NoPythonSupportedFeatureValidation",
    "AnnotateTypes",
    "DumpParforDiagnostics",
}
WRAPPER = "_ZN7cpython"  # the function that Python calls


def options() -> tuple[dict[str, Any], dict[str, Any]]:
    """Return options of numba's `njit`: for kernels, and for functions that only kernels call."""
    version = tuple(int(part) for part in numba.__version__.split(".")[:2])
    if not KNOWN[0] <= version <= KNOWN[1]:
        return {}, {}
    kernel, part = _compilers()
    return {"pipeline_class": kernel}, {"pipeline_class": part}


def _compilers() -> tuple[Any, Any]:
    from numba.core.codegen import JITCodeLibrary
    from numba.core.compiler import Compiler, Flags
    from numba.core.compiler_machinery import PassManager

    class Whole(JITCodeLibrary):
        """The code of a kernel."""

        def add_ir_module(self, ir_module: Any) -> None:
            """Add code, of which the wrapper is not optimised."""
            for function in ir_module.functions:
                if function.name.startswith(WRAPPER) and not function.is_declaration:
                    function.attributes.add("noinline")
                    function.attributes.add("optnone")
            super().add_ir_module(ir_module)

        def _optimize_functions(self, ll_module: Any) -> None:
            """Make functions a fifth as long; all the rest is for the whole kernel."""
            ll_module.data_layout = self._codegen._data_layout
            for function in ll_module.functions:
                if not function.is_declaration:
                    passes, builder = self._codegen._function_pass_manager(opt=1)
                    passes.run(function, builder)

    class Part(Whole):
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

    class Options(Flags):
        """Options that are equal if the same ones are set; numba compares them ever again."""

        __slots__ = ()

        def __hash__(self) -> int:
            return len(self._values)

        def __eq__(self, other: object) -> bool:
            return self._values == other._values if type(other) is Options else NotImplemented

    class KernelCompiler(Compiler):
        """Compiles kernels."""

        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            self.state.flags = Options(self.state.flags)

        def _library(self) -> Any:
            """Return an empty library for the code."""
            state = self.state
            library = Whole(state.targetctx.codegen(), state.func_id.func_qualname)
            library.enable_object_caching()
            return library

        def define_pipelines(self) -> Any:
            """Return the passes of the default pipeline that kernels need."""
            self.state.library = self._library()
            (default,) = super().define_pipelines()
            passes = PassManager(default.pipeline_name)
            for each, description in default.passes:
                if each.__name__ not in UNUSED:
                    passes.add_pass(each, description)
            passes.finalize()
            return [passes]

    class PartCompiler(KernelCompiler):
        """Compiles functions to parts of kernels."""

        def _library(self) -> Any:
            """Return an empty library for the code."""
            return Part(self.state.targetctx.codegen(), self.state.func_id.func_qualname)

    return KernelCompiler, PartCompiler
