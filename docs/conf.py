"""The site: `pip install -e ".[docs]" && sphinx-build -W docs build/site`, from the pages of this folder."""

import relaylab

project = "relaylab"
author = "The relaylab developers"
copyright = author
version = release = relaylab.__version__
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
root_doc = "index"
html_theme = "furo"
html_title = f"relaylab {version}"
html_extra_path = ["pages"]
exclude_patterns = ["**/.ipynb_checkpoints"]  # JupyterLab leaves them beside pages that it shows
myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence", "dollarmath"]
# links to files of the project that are no pages stay links to files
suppress_warnings = ["myst.xref_missing", "misc.highlighting_failure"]
