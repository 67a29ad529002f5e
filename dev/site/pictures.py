"""Pictures of pages. Pure. Called by `dev.site.hooks`.

A picture file has light and dark colours that follow the system's setting. On the site it is inlined to
follow the reader's choice there.
"""

import re

IMAGE = re.compile(r"^!\[([^\]]*)\]\((?:docs/)?pictures/([a-z0-9-]+\.svg)\)$", re.MULTILINE)
_STYLE = re.compile(r"<style>.*?</style>", re.DOTALL)


def inline(svg: str, text: str) -> str:
    """Return the picture as a figure without its own colours, which are in the site's style sheet."""
    bare = re.sub(r"\n\s*", " ", _STYLE.sub("", svg).strip())
    return f'<figure class="picture" role="img" aria-label="{text}">{bare}</figure>'
