"""One target under atheris: `python -m tests.fuzz.guided TARGET [libFuzzer's options] CORPUS`.

Started by `python -m tests.fuzz`, a process for each target.
"""

import sys
from pathlib import Path

import atheris

OURS = [
    "api", "build", "controller", "crds", "crewyard", "egress", "http_server", "internal_tls", "kube", "plan",
    "runner",
]  # fmt: skip

with atheris.instrument_imports(include=OURS, enable_loader_override=False):
    from tests.fuzz.every import TARGETS


def main() -> None:
    """Does not return: the fuzzer ends the process."""
    target = TARGETS[sys.argv.pop(1)]
    corpus = Path(sys.argv[-1])
    for number, seed in enumerate(target.seeds()):
        (corpus / f"seed-{number}").write_bytes(seed)
    atheris.Setup(sys.argv, target.run)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
