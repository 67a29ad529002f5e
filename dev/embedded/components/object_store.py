"""S3 server for the artifacts of `make up HA=1`: versitygw over a directory, on the bridge address."""

from pathlib import Path

from dev.process.probe import TcpProbe
from dev.process.program import ProcessSpec
from dev.settings import BRIDGE_ADDRESS, OBJECT_STORE_PORT, Settings

BUCKET = "crewyard"
ACCESS_KEY = "crewyard"
URL = f"http://{BRIDGE_ADDRESS}:{OBJECT_STORE_PORT}"


def process_spec(settings: Settings, versitygw: Path, password: str) -> ProcessSpec:
    """Return the process that `up` starts. `versitygw`: the binary."""
    place = settings.data / "replicas"
    argv = [str(versitygw), "--port", f"{BRIDGE_ADDRESS}:{OBJECT_STORE_PORT}", "--quiet"]
    argv += ["posix", "--sidecar", str(place / "attributes"), str(place / "buckets")]
    return ProcessSpec(
        name="object-store",
        argv=tuple(argv),
        environment={"ROOT_ACCESS_KEY": ACCESS_KEY, "ROOT_SECRET_KEY": password},
        probe=TcpProbe(BRIDGE_ADDRESS, OBJECT_STORE_PORT),
    )


def ensure(settings: Settings) -> None:
    """Create the server's directories and the bucket."""
    place = settings.data / "replicas"
    for path in (place / "attributes", place / "buckets" / BUCKET):
        path.mkdir(parents=True, exist_ok=True)


def environment(password: str) -> dict[str, str]:
    """Return the variables that the API server reads."""
    return {
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": password,
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": URL,
        "AWS_ALLOW_HTTP": "true",
    }
