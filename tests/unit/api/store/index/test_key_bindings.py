"""Tests of keys and the uids of their projects."""

from pathlib import Path

from sqlalchemy import text, update

from api.store.index import projects as projects_module
from api.store.index.api_keys import KeyRow
from api.store.sql.schema import projects
from api.store.store import Store
from tests.unit.api.store import builders
from tests.unit.api.store.old_index import old_index


async def put(store: Store, identity: str, *names: str) -> None:
    row = KeyRow(identity, "hash", "ci", frozenset({"run"}), frozenset(names), None, builders.NOW)
    await store.keys.put(row)


async def accepted(store: Store, identity: str) -> set[str]:
    """Return the projects for which the key is valid."""
    row = await store.keys.get(identity)
    return set() if row is None or row.revoked_at else set(row.projects or ())


async def test_new_project_of_the_name_accepts_no_old_key(store: Store) -> None:
    await store.projects.observe(builders.project())
    await put(store, "old", "demo")
    assert await accepted(store, "old") == {"demo"}
    await store.projects.observe(builders.project(uid="project-2"))
    assert await accepted(store, "old") == set()
    await put(store, "new", "demo")
    assert await accepted(store, "new") == {"demo"}


async def test_removed_project_revokes_its_keys(store: Store) -> None:
    await store.projects.observe(builders.project())
    await store.projects.observe(builders.project("other", "project-o"))
    await store.projects.observe(builders.project("demo-2", "project-d2"))
    await put(store, "one", "demo")
    await put(store, "both", "demo", "other")
    await put(store, "similar", "demo-2")
    await store.projects.remove("demo", "project-1", builders.NOW)
    assert await store.keys.revoked(["one", "both", "similar"]) == ["one"]
    assert {row.id: row.projects for row in await store.keys.all()} == {
        "both": {"other"},
        "similar": {"demo-2"},
    }
    await store.projects.observe(builders.project(uid="project-2"))
    assert await accepted(store, "both") == {"other"}


async def test_key_made_during_a_removal_is_for_the_next_project(store: Store, monkeypatch) -> None:
    monkeypatch.setattr(projects_module, "REMOVAL_WAIT_SECONDS", 0.05)
    await store.projects.observe(builders.project())
    await put(store, "old", "demo")
    async with store.projects._removal_turn:
        assert not await store.projects.remove("demo", "project-1", builders.NOW)
        assert await accepted(store, "old") == set()
        await put(store, "next", "demo")
    await store.projects.start_removal("demo", "project-1", builders.NOW)
    assert await accepted(store, "next") == {"demo"}
    await store.projects.observe(builders.project(uid="project-2"))
    assert await accepted(store, "next") == {"demo"}


async def test_key_before_its_project_is_bound_to_the_first(store: Store) -> None:
    await put(store, "early", "demo")
    assert await accepted(store, "early") == {"demo"}
    await store.projects.observe(builders.project())
    assert await accepted(store, "early") == {"demo"}
    async with store.database.write() as connection:
        await connection.execute(update(projects).values(uid="project-2"))
    assert await accepted(store, "early") == set()


async def test_key_is_refused_where_only_the_uid_differs(store: Store) -> None:
    """A replica of an older release may have replaced the row without revoking keys."""
    await store.projects.observe(builders.project())
    await put(store, "old", "demo")
    async with store.database.write() as connection:
        await connection.execute(update(projects).values(uid="project-2"))
    assert await accepted(store, "old") == set()


async def test_keys_of_an_older_release_keep_the_projects_that_exist(
    tmp_path: Path, empty_database: str | None
) -> None:
    async with old_index(tmp_path, empty_database, "0010") as connection:
        await connection.execute(
            text(
                "insert into projects (namespace, name, uid, ord, version, created_at, spec, status) "
                "values ('crews', 'demo', 'project-2', 1, 1, 1, '{}', '{}')"
            )
        )
        for name in ("demo", "gone"):
            await connection.execute(
                text(
                    "insert into removed_projects (namespace, uid, name, removed_at) "
                    f"values ('crews', 'removed-{name}', '{name}', 5000)"
                )
            )
        keys = {
            "kept": ('["demo"]', 1),
            "stale": ('["gone"]', 1),
            "early": ('["gone"]', 6000),
            "all": (None, 1),
        }
        for identity, (names, created) in keys.items():
            row = {"id": identity, "projects": names, "created": created}
            await connection.execute(
                text(
                    "insert into api_keys (namespace, id, hash, name, scopes, projects, created_at) "
                    "values ('crews', :id, 'hash', 'ci', '[\"run\"]', :projects, :created)"
                ),
                row,
            )
    store = await Store.open(tmp_path, "crews", empty_database)
    assert await accepted(store, "kept") == {"demo"}
    assert await accepted(store, "stale") == set()
    assert await accepted(store, "early") == {"gone"}
    everywhere = await store.keys.get("all")
    assert everywhere is not None and everywhere.projects is None
    await store.projects.observe(builders.project(uid="project-3"))
    await store.projects.observe(builders.project("gone", "gone-2"))
    assert await accepted(store, "kept") == set()
    assert await accepted(store, "stale") == set()
    assert await accepted(store, "early") == {"gone"}
    await store.close()
