"""API keys as JSON, from their rows, and request bodies as rows."""

from datetime import timedelta

import pytest

from api.store.index.api_keys import KeyRow
from api.v1.keys import view
from crds.api_keys import ApiKey
from tests.unit.api.conftest import NOW

LIMITED = {
    "scopes": ["run", "read"],
    "projects": ["tides", "demo"],
    "plan": "large",
    "expires_at": "2026-11-21T11:00:00Z",
}


@pytest.mark.parametrize(
    ("body", "scopes", "projects", "plan", "expires"),
    [
        (LIMITED, {"read", "run"}, {"demo", "tides"}, "large", NOW + timedelta(hours=1)),
        ({"scopes": ["admin"]}, {"admin"}, None, None, None),
        # It names no project, and so has access to none.
        ({"scopes": ["read"], "projects": []}, {"read"}, set(), None, None),
    ],
)
def test_row_of_a_new_key(body, scopes, projects, plan, expires):
    made = view.row(ApiKey("text", "k1", "a hash"), {"name": "CI", **body}, "user:ada", NOW)
    assert made == KeyRow(
        id="k1",
        hash="a hash",
        name="CI",
        scopes=frozenset(scopes),
        projects=None if projects is None else frozenset(projects),
        plan=plan,
        created_at=NOW,
        created_by="user:ada",
        expires_at=expires,
    )


@pytest.mark.parametrize(
    ("fields", "shown"),
    [
        ({}, {"projects": ["demo", "tides"], "expires_at": None, "last_used_at": None}),
        (
            {
                "projects": None,
                "expires_at": NOW + timedelta(hours=1),
                "last_used_at": NOW + timedelta(hours=2),
            },
            {"projects": None, "expires_at": "2026-11-21T11:00:00Z", "last_used_at": "2026-11-21T12:00:00Z"},
        ),
    ],
)
def test_key_is_shown_without_its_hash(fields, shown):
    own = {"projects": frozenset({"tides", "demo"}), "created_by": "user:ada", **fields}
    row = KeyRow("k1", "a hash", "CI", frozenset({"run", "read"}), plan="large", created_at=NOW, **own)
    assert view.item(row) == {
        "id": "k1",
        "name": "CI",
        "scopes": ["read", "run"],
        "plan": "large",
        "created_at": "2026-11-21T10:00:00Z",
        "created_by": "user:ada",
        **shown,
    }
