"""How Sphinx makes the site; docs/site/build calls it."""
import os

import yaml

project = "motel"
version = release = os.environ.get("MOTEL_VERSION", "")
extensions = ["myst_parser"]
root_doc = "index"
myst_heading_anchors = 5
highlight_language = "none"
nitpicky = True
# A block that is only a part of its language is shown without colours.
suppress_warnings = ["misc.highlighting_failure"]

html_theme = "furo"
html_title = f"motel {version}"
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_show_copyright = False
smartquotes = False
html_static_path = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "static")]
html_css_files = ["motel.css"]
pygments_style = "tango"
pygments_dark_style = "monokai"


def guess_language(app, doctree):
    """Blocks that do not name their language: YAML is coloured."""
    from docutils import nodes
    for block in doctree.findall(nodes.literal_block):
        if block.get("language", "none") in ("none", "default", "text"):
            try:
                tree = yaml.safe_load(block.astext())
            except yaml.YAMLError:
                continue
            if isinstance(tree, dict):
                block["language"] = "yaml"
        elif block["language"] == "console" and not any(line.startswith(("$ ", "# ")) for line in block.astext().splitlines()):
            block["language"] = "sh"    # commands without what they print


def setup(app):
    app.connect("doctree-read", guess_language)
