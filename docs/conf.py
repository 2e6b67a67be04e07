"""The documentation's site, as `scripts/docs` builds it: pages in MyST Markdown, the theme furo."""

from pathlib import Path

from nsysdiag.version import __version__

project = "nsysdiag"
release = version = __version__

extensions = ["myst_parser", "sphinx_copybutton"]
source_suffix = {".md": "markdown"}
myst_enable_extensions = ["attrs_inline"]
myst_heading_anchors = 4

html_theme = "furo"
html_title = f"nsysdiag {__version__}"
exclude_patterns = ["skills"]
html_extra_path = ["llms.txt"]
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_search_scorer = str(Path(__file__).with_name("_scorer.js"))
html_copy_source = False
html_show_sourcelink = False
html_use_index = False
html_show_copyright = html_show_sphinx = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#2f6f00", "color-brand-content": "#2f6f00"},
    "dark_css_variables": {"color-brand-primary": "#8fd14f", "color-brand-content": "#8fd14f"},
}
copybutton_prompt_text = "$ "
