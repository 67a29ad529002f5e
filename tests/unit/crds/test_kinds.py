"""Paths at the apiserver: no name leaves its kind and namespace."""

import pytest
from yarl import URL

from crds.kinds import RUN, SECRET

HERE = "/api/v1/namespaces/crews/secrets/"


def test_paths():
    assert SECRET.path("crews") == "/api/v1/namespaces/crews/secrets"
    assert SECRET.path("crews", "a.b-c") == f"{HERE}a.b-c"
    assert (
        RUN.path("crews", "run-a", "status")
        == "/apis/crewyard.dev/v1alpha1/namespaces/crews/runs/run-a/status"
    )


@pytest.mark.parametrize(
    "name",
    [
        *(
            "..",
            ".",
            "...",
            "../pods/x",
            "../../crewyard-system/secrets/key",
            "x/../../configmaps/y",
            "/x",
            "x/",
        ),
        *(
            "x?watch=true",
            "?watch=true",
            "x#y",
            "%2e%2e",
            "%2e%2e/pods",
            "..%2fpods",
            "x\\..\\y",
            "a b",
            "x\r\nX: y",
        ),
        *("ü", "\u2028", "x;y", "x&y=z"),
    ],
)
def test_any_name_stays_one_path_segment(name):
    url = URL(f"https://apiserver:6443{SECRET.path('crews', name)}")
    assert url.raw_path.startswith(HERE)
    assert "/" not in url.raw_path.removeprefix(HERE) and url.raw_path != HERE
    assert (url.query_string, url.raw_fragment, url.host) == ("", "", "apiserver")
