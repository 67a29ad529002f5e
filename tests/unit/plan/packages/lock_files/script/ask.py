# /// script
# requires-python = ">=3.11"
# dependencies = [
#   "markdown-it-py[linkify]>=3,<5",
#   "six ; python_version >= '3.11'",
# ]
# ///
from markdown_it import MarkdownIt

print(MarkdownIt("js-default").render("tides.example"))
