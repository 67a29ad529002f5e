"""Pictures of pages. Pure. Called by `dev.site.hooks`.

A picture in a page stands alone, with colours for light and for dark after the system's
choice. On the site it becomes part of the page, so that it follows the reader's choice there.
"""

import re

IMAGE = re.compile(r"^!\[([^\]]*)\]\((?:docs/)?pictures/([a-z0-9-]+\.svg)\)$", re.MULTILINE)
_STYLE = re.compile(r"<style>.*?</style>", re.DOTALL)


def inline(svg: str, text: str) -> str:
    """The picture as a figure: without its own colours, which the site's style sheet has."""
    bare = re.sub(r"\n\s*", " ", _STYLE.sub("", svg).strip())
    return f'<figure class="picture" role="img" aria-label="{text}">{bare}</figure>'
