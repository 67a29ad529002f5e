"""API settings: working defaults, and one error that names all invalid variables."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from api.config import ApiConfigError, parse

KEY = {"CREWYARD_TOKEN_KEY": "k" * 32}


def test_token_key_is_the_only_required_setting() -> None:
    config = parse(KEY)
    assert (config.namespace, config.data, config.port) == ("crews", Path("/var/lib/crewyard"), 8080)
    assert config.internal_url == "http://crewyard-api.crewyard-system.svc:8080"
    assert KEY["CREWYARD_TOKEN_KEY"] not in repr(config)


def test_all_settings() -> None:
    config = parse(
        {
            **KEY,
            "CREWYARD_PUBLIC_URL": "https://crews.example.com/",
            "CREWYARD_NET_ALLOW": "10.0.0.0/8, fd00::/8",
            "CREWYARD_PLANS": '{"free": {"requests_per_minute": 5, "concurrent_runs": 1}}',
            "CREWYARD_RUN_TTL": "1.5",
        }
    )
    assert config.public_url == "https://crews.example.com"
    assert config.net_allow == ("10.0.0.0/8", "fd00::/8")
    assert config.plans.of("free").requests_per_minute == 5
    assert config.run_ttl == 1.5


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("CREWYARD_NAMESPACE", "a b"),
        ("CREWYARD_NAMESPACES", "team-a,Team_B"),
        ("CREWYARD_TOKEN_KEY", "short"),
        ("CREWYARD_OTHER_TOKEN_KEYS", f"{'k' * 16} short"),
        ("CREWYARD_PUBLIC_URL", "crews.example.com"),
        ("CREWYARD_INTERNAL_URL", "ftp://x"),
        ("CREWYARD_NET_ALLOW", "everything"),
        ("CREWYARD_NET_ALLOW", "10.1.2.3:70000"),
        ("CREWYARD_NET_DENY", "10.0.0.0/99"),
        ("CREWYARD_PLANS", "{"),
        ("CREWYARD_PLANS", "[]"),
        ("CREWYARD_PLANS", '{"x": {}}'),
        ("CREWYARD_LOG_LEVEL", "loud"),
        ("CREWYARD_RUN_TTL", "-1"),
        ("CREWYARD_PORT", "many"),
    ],
)
def test_invalid_variable_is_named(name: str, value: str) -> None:
    with pytest.raises(ApiConfigError, match=name):
        parse({**KEY, name: value})


@pytest.mark.parametrize("name", ["run_ttl", "record_ttl", "seal_after", "upload_ttl"])
def test_a_time_that_is_meant_as_unlimited_leads_to_a_date(name: str) -> None:
    config = parse({**KEY, f"CREWYARD_{name.upper()}": "999999999999"})
    span, now = timedelta(seconds=getattr(config, name)), datetime(2026, 11, 21, tzinfo=UTC)
    assert now - span < now - timedelta(days=36_500) and now + span > now + timedelta(days=36_500)


def test_all_invalid_variables_are_named_together() -> None:
    with pytest.raises(ApiConfigError) as error:
        parse({"CREWYARD_NAMESPACE": "a b", "CREWYARD_PORT": "x"})
    named = ("CREWYARD_NAMESPACE", "CREWYARD_TOKEN_KEY", "CREWYARD_PORT")
    assert all(name in str(error.value) for name in named)


def test_an_empty_variable_counts_as_not_set() -> None:
    names = ("NAMESPACE", "PUBLIC_URL", "PLANS", "PORT", "RUN_TTL", "CLAIMS_NOT_BEFORE", "PRICES", "DATA")
    assert parse({**KEY, **{f"CREWYARD_{name}": " " for name in names}}) == parse(KEY)


@pytest.mark.parametrize(
    ("variables", "problem"),
    [
        ({"CREWYARD_PLANS": "["}, "CREWYARD_PLANS: must be a JSON object of plans"),
        ({"CREWYARD_PLANS": '{"x": {}}'}, "CREWYARD_PLANS: plan 'x' needs the integers"),
        ({"CREWYARD_PRICES": "{}"}, "CREWYARD_PRICES: needs a currency"),
        (
            {"CREWYARD_TRUSTED_PROXIES": "x"},
            "CREWYARD_TRUSTED_PROXIES: 'x' does not appear .*; write networks",
        ),
        ({"CREWYARD_BLOBS_URL": "file:///x/"}, "CREWYARD_BLOBS_URL: must be s3://"),
        ({"CREWYARD_DATABASE_URL": "mysql://h/x"}, "CREWYARD_DATABASE_URL: must be postgresql"),
        (
            {"CREWYARD_CLAIMS_NOT_BEFORE": "monday"},
            "CREWYARD_CLAIMS_NOT_BEFORE: must be a time with its zone",
        ),
        (
            {"CREWYARD_KEPT_UPLOADS": "1"},
            "CREWYARD_KEPT_UPLOADS: must be at least .*, the limit context_bytes",
        ),
    ],
)
def test_a_problem_is_described_once(variables: dict[str, str], problem: str) -> None:
    with pytest.raises(ApiConfigError, match=f"^wrong settings:\\n- {problem}") as error:
        parse({**KEY, **variables})
    assert str(error.value).count("CREWYARD_") == 1
