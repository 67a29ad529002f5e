"""Proofs of builds: of one Deployment and one image, by a key of the installation."""

from dataclasses import replace

import pytest

from controller.build_proof.proof import prove, proven_pod
from controller.build_proof.proven_digests import MAX_IMAGES, ProvenDigests, proven_images
from crds.objects import Deployment
from plan.keys import base_keys, dependencies_key
from plan.packages.dependencies import DependencyDeclaration

DIGEST = "sha256:" + "de" * 32
STORED_PROOF = "uid-pod.b0ce6923e8d19f8cbca4108114e138d56b5dfff8585454483d0f7d4451d72313"
FIELDS = ("image", "dependenciesDigest", "tree", "sourceKey", "buildKey", "dependenciesKey")


@pytest.fixture
def proven(make, config):
    """Return a built Deployment with a proof; `forged` replaces what the proof covers."""

    def proven(name="dep-a", project="demo", key=config.token_key, age=60, forged=(), built=True, **status):
        found = {
            "tree": "t",
            "sourceKey": "s",
            "buildKey": "b",
            "dependenciesKey": "d",
            "dependenciesDigest": DIGEST,
            **status,
        }
        meta = {"creationTimestamp": make.ago(age)}
        made = make.deployment(name, project, built, status=found, metadata=meta)
        proof = prove(key, config.namespace, made, "uid-pod", made.status)
        return Deployment({**made.raw, "status": {**made.status, "proof": proof, **dict(forged)}})

    return proven


def test_proof_is_of_the_pod(proven, config):
    assert proven_pod(config.token_keys, "crews", proven()) == "uid-pod"


@pytest.mark.parametrize("name", [*FIELDS, "proof"])
@pytest.mark.parametrize("value", ["other", "", None])
def test_changed_status_is_not_proven(proven, config, name, value):
    assert proven_pod(config.token_keys, "crews", proven(forged={name: value})) is None


def test_proof_of_another_pod_or_deployment_does_not_count(proven, make, config):
    mine = proven()
    signature = mine.status["proof"].partition(".")[2]
    moved = [
        proven(forged={"proof": f"other.{signature}"}),
        proven(forged={"proof": signature}),
        make.deployment("dep-b", status=mine.status),
        make.deployment("dep-a", "other", status=mine.status),
        make.deployment("dep-a", status=mine.status, metadata={"uid": "later"}),
    ]
    assert [proven_pod(config.token_keys, "crews", one) for one in moved] == [None] * len(moved)
    assert proven_pod(config.token_keys, "other", mine) is None
    assert proven_pod(("another key",), "crews", mine) is None


def test_stored_proof_stays_valid():
    found = Deployment(
        {
            "metadata": {"name": "dep-a", "uid": "uid-a"},
            "spec": {"project": "demo"},
            "status": {"image": "registry/demo@sha256:1", "buildKey": "b", "proof": STORED_PROOF},
        }
    )
    assert proven_pod(["the key"], "crews", found) == "uid-pod"


def test_proof_by_another_key_of_the_ring_counts(proven, config):
    earlier = proven(key="the earlier key")
    assert proven_pod(config.token_keys, "crews", earlier) is None
    rotated = replace(config, other_token_keys=("the earlier key",))
    assert proven_pod(rotated.token_keys, "crews", earlier) == "uid-pod"


def test_builds_may_take_only_proven_images_of_their_project(proven, config):
    mine, forged = proven("dep-a"), proven("dep-b", forged={"buildKey": "x", "dependenciesKey": "y"}, age=1)
    other = proven("dep-c", "other", buildKey="z", dependenciesKey="z")
    found = proven_images("demo", [mine, forged, other], config)
    image = mine.image.partition("@")[2]
    assert found.images == {"b": {"image": image, "dependencies": DIGEST}}
    assert found.dependencies == {"d": DIGEST} and found.shared == {}
    assert found.as_request({"e": "sha256:e"}) == {
        "images": {"b": {"image": image, "dependencies": DIGEST}},
        "dependencies": {"d": DIGEST, "e": "sha256:e"},
        "shared": {},
    }
    assert proven_images("demo", [proven(built=False)], config) == ProvenDigests()


def test_newest_image_of_a_build_key_counts(proven, config):
    older = proven("dep-b", dependenciesKey="e", dependenciesDigest="sha256:" + "01" * 32, age=90)
    found = proven_images("demo", [older, proven("dep-a")], config)
    assert found.images["b"]["dependencies"] == DIGEST
    assert list(found.dependencies) == ["d", "e"]


def test_image_without_dependencies_is_shared_among_projects(proven, config):
    (base,) = config.base_images.values()
    key = dependencies_key(DependencyDeclaration(""), "3.11", base, "")
    old, new = "sha256:" + "01" * 32, "sha256:" + "02" * 32
    found = proven_images(
        "demo",
        [
            proven("dep-a", "other", dependenciesKey=key, dependenciesDigest=old, age=90),
            proven("dep-b", "third", dependenciesKey=key, dependenciesDigest=new, age=80),
            proven("dep-c", "third", dependenciesKey=key, age=70, forged={"dependenciesDigest": "forged"}),
        ],
        config,
    )
    assert (found.images, found.dependencies, found.shared) == ({}, {}, {key: new})


def test_base_image_of_an_installation_is_proven_and_shared(proven, config):
    (key,) = base_keys(config.base_images)
    old, new = "sha256:" + "01" * 32, "sha256:" + "02" * 32
    found = [
        proven("dep-a", "other", baseKey=key, baseDigest=old, age=90),
        proven("dep-b", "third", baseKey=key, baseDigest=new, age=80),
        proven("dep-c", "third", baseKey="unknown", baseDigest=old, age=75),
        proven("dep-d", "third", age=70, forged={"baseKey": key, "baseDigest": "forged"}),
        proven("dep-e", "third", baseKey=key, baseDigest=old, age=60, forged={"baseDigest": "forged"}),
    ]
    assert proven_images("demo", found, config).shared == {key: new}
    own = proven_images("third", found[:2], config)
    assert own.bases == {DIGEST: {"baseKey": key, "baseDigest": new}}
    # In its own repository, beside a newer one of another project.
    assert proven_images("other", found, config).dependencies == {"d": DIGEST, key: old}


def test_only_the_newest_are_in_the_environment_of_a_pod(proven, config):
    many = [proven(f"dep-{n}", buildKey=f"b{n}", dependenciesKey=f"d{n}", age=n) for n in range(99)]
    found = proven_images("demo", many, config)
    assert set(found.images) == {f"b{n}" for n in range(MAX_IMAGES)}
    assert set(found.dependencies) == {f"d{n}" for n in range(MAX_IMAGES)}
