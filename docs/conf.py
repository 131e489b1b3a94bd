"""Sphinx configuration: `python -m sphinx -W --keep-going docs build/docs`."""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE.parent)]

from skattr import __version__  # noqa: E402

project, author = "skattr", "skattr developers"
copyright = "skattr developers"
version = release = __version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_design",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "docstrings",
    "exactness",
    "mathml",
]
templates_path = ["_templates"]
exclude_patterns = ["_ext", "_pictures", "_templates", "auto_examples/**/*.ipynb"]
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
html_math_renderer = "mathml"

default_role = "py:obj"  # names in docstrings are links where there is something to link to
autosummary_generate = True
autodoc_typehints = "none"  # numpydoc lists the types of parameters
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "amsmath"]
myst_heading_anchors = 3
suppress_warnings = ["config.cache"]

sphinx_gallery_conf = {
    "examples_dirs": ["../examples"],
    "gallery_dirs": ["auto_examples"],
    "filename_pattern": r"/(?!dask_parquet|spark)\w+\.py",  # clusters are shown, not started
    "ignore_pattern": r"picture\.py",
    "reset_argv": "gallery.reset_argv",
    "within_subsection_order": "FileNameSortKey",
    "nested_sections": False,
    "download_all_examples": False,
    "default_thumb_file": str(HERE / "_static" / "thumbnails" / "paper.png"),
    "show_memory": False,
    "write_computation_times": False,  # that page would load scripts from a network
    "show_signature": False,
    "remove_config_comments": True,
    "min_reported_time": 5,
    "abort_on_example_error": True,
    "plot_gallery": "True",
}

html_theme = "pydata_sphinx_theme"
html_static_path = ["_static"]
html_css_files = ["skattr.css"]
html_title = "skattr"
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "skattr"},
    "navbar_align": "left",
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "footer_start": ["copyright"],
    "footer_end": [],
    # pages with wide tables have all the room
    "secondary_sidebar_items": {"**": ["page-toc"], "exactness": [], "benchmarks": []},
}
html_sidebars = {page: [] for page in ("index", "getting_started", "coming_from", "genindex")}
html_context = {"default_mode": "auto"}  # light or dark, as the system is
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
linkcheck_ignore = [r"https?://.*"]  # builds have no network: links inside the site are checked
