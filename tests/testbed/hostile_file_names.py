"""Names of artifacts that server, command line and action must refuse, and names that all accept.

Called by the tests of each of the three.
"""

REPOSITORY = [
    ".git",
    ".git/config",
    "deep/.git/hooks/post-checkout",
    ".GIT/config",
    ".Git",
    "git~1/config",
    "GIT~1",
    "git~2/config",
    ".g\u200cit/config",
    ".git\u200d/config",
    "\ufeff.git/config",
    ".gi\u202et/config",
    ".g\u00adit/config",
    "\uff0egit/config",
    ".\uff47it/config",
    ".git./config",
    ".git /config",
    ".git. ./config",
    ".git::$INDEX_ALLOCATION/config",
    ".git:x/config",
    "a\\.git\\config",
    ".git\\config",
    ".hg/hgrc",
    ".HG",
    "hg~1/hgrc",
    ".svn/wc.db",
    ".\u017fvn/wc.db",
    "svn~1/wc.db",
    ".bzr/branch/branch.conf",
    ".jj/repo/config.toml",
]
OUTSIDE = ["../x", "/x", "a//b", "a/../b", "", ".", "./a", "a/..", "a/", "a\0b"]
WINDOWS = ["con", "a/NUL.txt", "a:b", "a\\b", "trailing.", "trailing ", "x?", "C:/x", "a. "]
"""Refused on Windows alone."""
HARMLESS = [
    "report.md",
    "..a/…",
    "größe %41.txt",
    ".github/workflows/x.yml",
    ".gitignore",
    "git",
    "legit/x",
    "digit~1.txt",
    "hg/notes",
    "x.git",
    "y.git/config",
    "a-.git",
]
