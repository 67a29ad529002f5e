"""Tests of the client that a kubeconfig describes."""

import tempfile
from pathlib import Path

import pytest

from kube.client import KubeClient
from tests.testbed.certificates import certificate
from tests.unit.test_killed_processes import kubeconfig


async def test_no_file_keeps_the_client_certificate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, temporary = tmp_path / "kubeconfig", tmp_path / "tmp"
    file.write_text(kubeconfig(certificate("127.0.0.1")))
    temporary.mkdir()
    monkeypatch.setattr("kubernetes.aio.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION", str(file))
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    # Twice: the library would find the files of the first again.
    for _ in range(2):
        kube = await KubeClient.connect("crews")
        assert list(temporary.iterdir()) == []
        assert kube._api.rest_client.ssl_context.get_ca_certs()
        await kube.close()
