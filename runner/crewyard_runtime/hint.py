"""The next step for a failure with a known cause, such as a missing variable. Called by `failure`."""

from __future__ import annotations

import errno
import os
import re
import sys
import traceback
from types import FrameType

from .frameworks.installed_files import is_installed

_MAX_CHAIN = 10
_MAX_NAMES = 10
_MAX_FILE_BYTES = 65536
_EXAMPLE_FILES = (".env.example", ".env.sample", ".env.template")
_NAME = re.compile(r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b")
# What has words that look like a variable: a status of a service, the reason of it, a link.
_STATUS = re.compile(
    r"https?://\S+|\b[1-5]\d\d [A-Z_]+\b|StatusCode\.[A-Z_]+"
    r"""|["'](?:code|reason|status|type)["']: ?["'][A-Z_]+["']"""
)
_ABOUT_VARIABLES = re.compile(
    r"environment|env var|not set|must be set|is required|missing|api[_ ]key|credentials|not found|provide",
    re.IGNORECASE,
)
# CrewAI, about a placeholder of a task.
_MISSING_INPUT = re.compile(r"[Tt]emplate variable '([\w-]+)'")
_UNKNOWN_NAME = ("Name or service not known", "Temporary failure in name resolution")  # of the C library
_LIBRARY = re.compile(
    r"(?P<name>lib[\w.+-]+?)\.so(?:\.(?P<version>\d+))?[\d.]*: cannot open shared object file"
)
_GLIB, _GLIB_NAMES = "libglib2.0-0", ("libglib-2.0", "libgobject-2.0", "libgthread-2.0")
_IMPORT = re.compile(r"\s*(?:from|import)\s+([\w.]+)")
# The command in an error's text that installs what is missing.
_INSTALL = re.compile(
    r"""\b(?:uv add|pip3? install)(?: -U| --upgrade)? +["'`]?(?!(?:it|them|this|that)\b)"""
    r"""([A-Za-z0-9](?:[\w.-]*\w)?(?:\[[\w,-]+\])?)(?=["'`)<>=~]|[ .]*$)""",
    re.MULTILINE,
)
_MAX_DIRECTORIES = 5000
_SET_REQUIREMENT = "crewyard projects set PROJECT --requirement"
# Modules whose package has another name, or a name of a family.
_PACKAGES = {
    "Crypto": "pycryptodome",
    "PIL": "pillow",
    "agents": "openai-agents",
    "autogen": "ag2~=0.9",  # later versions have another module
    "bs4": "beautifulsoup4",
    "crewai_tools": "crewai-tools",
    "cv2": "opencv-python-headless",
    "dateutil": "python-dateutil",
    "distutils": "setuptools",
    "docx": "python-docx",
    "dotenv": "python-dotenv",
    "faiss": "faiss-cpu",
    "fitz": "pymupdf",
    "github": "PyGithub",
    "googleapiclient": "google-api-python-client",
    "jose": "python-jose",
    "jwt": "PyJWT",
    "newspaper": "newspaper4k",
    "pptx": "python-pptx",
    "serpapi": "google-search-results",
    "sklearn": "scikit-learn",
    "slack_sdk": "slack-sdk",
    "strands": "strands-agents",
    "tavily": "tavily-python",
    "yaml": "PyYAML",
}
_SAME_NAME = (
    "agno",
    "anthropic",
    "autogen_",
    "crewai",
    "dspy",
    "langchain",
    "langgraph",
    "openai",
    "pydantic_ai",
    "smolagents",
)
_TIMEOUTS = ("ConnectTimeout", "ConnectTimeoutError", "ConnectionTimeout", "ConnectionTimeoutError")


def hint(error: BaseException, app: str) -> str:
    """Return the next step for this exception, an empty string if its cause is not known. Never raises."""
    chain = _chain(error)
    try:
        for item in chain:
            if name := _missing_variable(item):
                return _set_variable(name, app)
        for item in chain:
            if what := _missing_in_image(item) or _missing_input(item):
                return what
        # First: urllib3 calls a name without an address a timeout, too.
        if any(_is_unknown_name(item) for item in chain):
            return (
                "A host name has no address: it is wrong, or the service is where runs cannot look it up, "
                "such as the internet on a cluster without it. Correct the address in the crew's variables "
                "or input, or run where the service can be reached."
            )
        if any(_is_connect_timeout(item) for item in chain):
            return (
                "The connection timed out. Runs reach the internet, but no private network and nothing in "
                "the cluster: a network policy blocks it. For a model or service in the cluster, "
                "see spec.run.egress of the Project."
            )
        if any(_is_refused(item) for item in chain):
            return (
                "Nothing listens at that address: localhost is the run's own pod, which has no model server. "
                "Set the address of the service in the crew's variables; "
                "for one in the cluster, see spec.run.egress of the Project."
            )
        for number, item in enumerate(chain, 1):
            package = _named_package(chain[:number])
            if isinstance(item, ImportError) and (what := _missing_module(item, app, package)):
                return what
    except Exception:  # an exception whose attributes fail
        return ""
    return ""


def _missing_variable(error: BaseException) -> str | None:
    if isinstance(error, KeyError):
        frames = _frames(error)
        from_environ = frames and frames[-1][0].f_code is type(os.environ).__getitem__.__code__
        return str(error.args[0]) if from_environ and error.args else None
    if setting := _missing_setting(error):
        return setting
    text = str(error)[:2000]
    if not _ABOUT_VARIABLES.search(text):
        return None
    return next((name for name in _NAME.findall(_STATUS.sub("", text)) if name not in os.environ), None)


def _missing_setting(error: BaseException) -> str | None:
    """Return the variable of the first required field that pydantic-settings did not find."""
    modules = {frame.f_globals.get("__name__"): frame for frame, _ in reversed(_frames(error))}
    settings_frame = modules.get("pydantic_settings.main")
    settings = settings_frame.f_locals.get("__pydantic_self__") if settings_frame else None
    if settings is None or not hasattr(error, "errors"):
        return None
    missing = [one["loc"][0] for one in error.errors() if one["type"] == "missing" and len(one["loc"]) == 1]
    if not missing:
        return None
    # A field with an alias is reported by its alias, to which no prefix belongs.
    has_prefix = missing[0] in type(settings).model_fields
    name = f"{settings.model_config.get('env_prefix') or '' if has_prefix else ''}{missing[0]}"
    return name if settings.model_config.get("case_sensitive") else name.upper()


def _missing_input(error: BaseException) -> str:
    """Return how to give an input that a text of the crew names, else an empty text."""
    if not (found := _MISSING_INPUT.search(str(error)[:2000])):
        return ""
    example = f"""'{{"{found[1]}": "…"}}'"""
    return (
        f"The crew's text names {{{found[1]}}}, and the input of this run has no {found[1]}. "
        f"Give it: crewyard run PROJECT --input {example}, or `input` of the Run."
    )


def _missing_in_image(error: BaseException) -> str:
    """Return how to get a shared library or a program that the image lacks, else an empty text."""
    text = str(error)[:2000]
    if isinstance(error, (OSError, ImportError)) and (library := _LIBRARY.search(text)):
        name, version = library["name"], library["version"]
        package = _GLIB if name in _GLIB_NAMES else _debian_package(name, version)
        return (
            f"The image lacks the library {library[0].partition(':')[0]}. Its Debian package is probably "
            f'{package}: add [build] packages = ["{package}"] to crew.toml.'
        )
    if isinstance(error, FileNotFoundError) and "/" not in str(error.filename) and _started_by(error):
        return (
            f"The image has no program {error.filename}. Name its Debian package in crew.toml, "
            "[build] packages, or build on an image that has it ([build] dockerfile)."
        )
    return ""


def _named_package(chain: list[BaseException]) -> str:
    """Return the package that an exception, or one raised for it, tells to install, quoted for a shell."""
    texts = (str(item)[:2000] for item in chain if isinstance(item, ImportError))
    name = next((found[1] for text in texts if (found := _INSTALL.search(text))), "")
    return f"'{name}'" if "[" in name else name


def _missing_module(error: ImportError, app: str, package: str) -> str:
    """Return how to get `package` or that of a missing module, or another version; else an empty text."""
    module = error.name or ""
    top = module.partition(".")[0]
    if file := _file_of_installed(top):
        if not is_installed(file):
            return ""
        return (
            f"{_installed(top)} does not have it: the source needs another version. Ask for it in the crew's "
            f'dependencies or in the project ({_SET_REQUIREMENT} "NAME<VERSION"), and deploy again.'
        )
    if not module or not isinstance(error, ModuleNotFoundError) or _is_in_source(top, app):
        return ""
    module = _whole_module(error, module)
    package = package or _package_of(module)
    return (
        f"No installed package has the module {module}. Add {package or 'the package that has it'} to the "
        f"crew's dependencies or to the project ({_SET_REQUIREMENT} {package or 'NAME'}), and deploy again."
    )


def _whole_module(error: BaseException, module: str) -> str:
    """Return the module that the failed statement imports, of which `module` may be the first part only.

    If no package has any part of a namespace such as `google`, Python names only that.
    """
    import linecache

    frames = _frames(error)
    if not frames:
        return module
    frame, number = frames[-1]
    line = linecache.getline(frame.f_code.co_filename, number)
    statement = _IMPORT.match(line)
    return statement[1] if statement and statement[1].startswith(f"{module}.") else module


def _file_of_installed(top: str) -> str:
    """Return the file of an imported package; empty for a namespace, which any package may extend."""
    return str(getattr(sys.modules.get(top), "__file__", None) or "")


def _installed(top: str) -> str:
    """Return the package of an installed module with its version."""
    from importlib import metadata

    names = metadata.packages_distributions().get(top) or ()
    return f"{names[0]} {metadata.version(names[0])}" if names else f"The installed {top}"


def _is_in_source(top: str, app: str) -> bool:
    """Return whether the source has a module of this name, which a package index may have, too."""
    names = {top, f"{top}.py"}
    for number, (_, directories, files) in enumerate(os.walk(app)):
        if number > _MAX_DIRECTORIES or not names.isdisjoint({*directories, *files}):
            return True
    return False


def _package_of(module: str) -> str:
    """Return the package that has the module, if it is known."""
    parts = module.split(".")
    if parts[0] in _PACKAGES:
        return _PACKAGES[parts[0]]
    if parts[0] == "llama_index":
        return "-".join(parts[: 2 if parts[1:2] == ["core"] else 3]).replace("_", "-")
    if parts[0] == "google" and len(parts) > 1:
        return "-".join(parts[: 3 if parts[1] == "cloud" else 2])
    return parts[0].replace("_", "-") if parts[0].startswith(_SAME_NAME) else ""


def _debian_package(name: str, version: str | None) -> str:
    """Return the package of a library by Debian's rule: libX.so.5 is in libx5, libX2.so.5 in libx2-5."""
    lower = name.lower().replace("_", "-")
    dash = "-" if version and lower[-1].isdigit() else ""
    return f"{lower}{dash}{version or ''}"


def _started_by(error: BaseException) -> bool:
    """Return whether the start of a program raised it."""
    frames = _frames(error)
    return bool(frames) and frames[-1][0].f_globals.get("__name__") == "subprocess"


def _set_variable(name: str, app: str) -> str:
    text = (
        f"The variable {name} is not set. Set it with `crewyard env set -p PROJECT {name}` and start the "
        "run again."
    )
    for file in _EXAMPLE_FILES:
        names = _unset_names(os.path.join(app, file))
        if names:
            return f"{text} Of the variables in {file}, not set: {', '.join(names)}."
    return text


def _unset_names(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = file.read(_MAX_FILE_BYTES).splitlines()
    except OSError:
        return []
    names = [line.removeprefix("export ").partition("=")[0].strip() for line in lines if "=" in line]
    return [name for name in names if name.isidentifier() and name not in os.environ][:_MAX_NAMES]


def _is_connect_timeout(error: BaseException) -> bool:
    if any(kind.__name__ in _TIMEOUTS for kind in type(error).__mro__):
        return True
    return isinstance(error, OSError) and error.errno == errno.ETIMEDOUT


def _is_refused(error: BaseException) -> bool:
    """Return whether no process listens at an address."""
    return isinstance(error, OSError) and error.errno == errno.ECONNREFUSED


def _is_unknown_name(error: BaseException) -> bool:
    text = str(error)[:2000]
    return any(part in text for part in _UNKNOWN_NAME)


def _frames(error: BaseException) -> list[tuple[FrameType, int]]:
    """Return the frames of the traceback with their line numbers, outermost first."""
    return list(traceback.walk_tb(error.__traceback__))


def _chain(error: BaseException) -> list[BaseException]:
    """Return the exception, what caused it, and the members of a group, outermost first."""
    chain: list[BaseException] = []
    pending: list[BaseException | None] = [error]
    while pending and len(chain) < _MAX_CHAIN:
        item = pending.pop(0)
        if item is None or item in chain:
            continue
        chain.append(item)
        pending.append(item.__cause__ or item.__context__)
        pending += item.exceptions if isinstance(item, BaseExceptionGroup) else ()
    return chain
