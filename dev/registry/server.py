"""Image registry of the embedded cluster: Debian's docker-registry at the bridge address, plain HTTP.

Pulls need no password, pushes do: it accepts the tokens of `dev.registry.token_server`.
"""

import json

from dev.packages import program_path
from dev.process.probe import HttpProbe
from dev.process.program import ProcessSpec
from dev.registry import signing, token_server
from dev.settings import BRIDGE_ADDRESS, REGISTRY_PORT, Settings

URL = f"http://{BRIDGE_ADDRESS}:{REGISTRY_PORT}"


def configuration(settings: Settings, secret: str) -> str:
    """Return the configuration file: JSON, which is also YAML. `secret` signs the state of uploads."""
    return json.dumps(
        {
            "version": "0.1",
            "log": {"level": "warn", "accesslog": {"disabled": True}},
            "storage": {
                "filesystem": {"rootdirectory": str(settings.data / "registry"), "maxthreads": 100},
                "delete": {"enabled": True},
                "cache": {"blobdescriptor": "inmemory"},
                "maintenance": {
                    "uploadpurging": {"enabled": True, "age": "24h", "interval": "6h", "dryrun": False}
                },
            },
            "auth": {
                "token": {
                    "realm": f"{token_server.URL}/token",
                    "service": token_server.SERVICE,
                    "issuer": token_server.ISSUER,
                    "rootcertbundle": str(signing.certificate_file(settings)),
                }
            },
            "http": {"addr": f"{BRIDGE_ADDRESS}:{REGISTRY_PORT}", "secret": secret, "relativeurls": True},
        },
        indent=2,
    )


def process_spec(settings: Settings, secret: str) -> ProcessSpec:
    """Return the process that `up` starts."""
    file = settings.configuration / "registry.yaml"
    return ProcessSpec(
        name="registry",
        argv=(program_path("docker-registry"), "serve", str(file)),
        files={file: configuration(settings, secret)},
        environment={"OTEL_TRACES_EXPORTER": "none"},
        probe=HttpProbe(f"{URL}/"),
    )
