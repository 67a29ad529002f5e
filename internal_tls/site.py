"""The listener of a TLS port for pods. Called by `api.__main__` and `controller.process`.

asyncio's own TLS listener does not bound the handshakes that are under way, and crews can connect to this
port. Here the oldest handshake ends where there are too many, so clients that send nothing block no others.
"""

import asyncio
import contextlib
import socket
from collections import OrderedDict
from collections.abc import Callable

import structlog
from aiohttp import web

from internal_tls.certificate import CertificateFiles
from internal_tls.metrics import TlsMetrics

MAX_HANDSHAKES = 256
HANDSHAKE_TIMEOUT_SECONDS = 10.0
ACCEPT_RETRY_SECONDS = 1.0
"""Pause after a connection could not be accepted, for lack of file descriptors."""
REFRESH_SECONDS = 10.0
_log = structlog.get_logger("internal_tls")


class TlsSite(web.BaseSite):
    """A TLS listener; `make_connection` returns the protocol of a connection. `port` 0: any free port."""

    def __init__(
        self,
        runner: web.AppRunner,
        host: str,
        port: int,
        make_connection: Callable[[], asyncio.Protocol],
        files: CertificateFiles,
        metrics: TlsMetrics,
    ) -> None:
        super().__init__(runner, backlog=1024)
        self._address, self._make_connection = (host, port), make_connection
        self._files, self._metrics = files, metrics
        self._listener: socket.socket | None = None
        self._loops: list[asyncio.Task[None]] = []
        self._handshakes: OrderedDict[asyncio.Task[None], None] = OrderedDict()

    @property
    def name(self) -> str:
        """The URL it listens on."""
        host, port = self._listener.getsockname()[:2] if self._listener else self._address
        return f"https://{host}:{port}"

    async def start(self) -> None:
        """Start to listen. Raises OSError if the port is unavailable."""
        await super().start()
        self._listener = socket.create_server(self._address, backlog=self._backlog)
        self._listener.setblocking(False)
        self._report()
        self._loops = [
            asyncio.create_task(self._accept(self._listener)),
            asyncio.create_task(self._refresh()),
        ]

    async def stop(self) -> None:
        """Stop accepting connections."""
        stopping = [*self._loops, *self._handshakes]
        for task in stopping:
            task.cancel()
        await asyncio.gather(*stopping, return_exceptions=True)
        if self._listener is not None:
            self._listener.close()
        await super().stop()

    async def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                client, _ = await loop.sock_accept(listener)
            except OSError as error:
                _log.warning("tls_accept_failed", error=str(error))
                await asyncio.sleep(ACCEPT_RETRY_SECONDS)
                continue
            if len(self._handshakes) >= MAX_HANDSHAKES:
                oldest, _ = self._handshakes.popitem(last=False)
                oldest.cancel()
            task = asyncio.create_task(self._shake_hands(client))
            self._handshakes[task] = None
            task.add_done_callback(lambda done: self._handshakes.pop(done, None))

    async def _shake_hands(self, client: socket.socket) -> None:
        """Give the connection to the HTTP server once its handshake is done."""
        result = "failed"
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                self._make_connection,
                client,
                ssl=self._files.current.context,
                ssl_handshake_timeout=HANDSHAKE_TIMEOUT_SECONDS,
            )
            result = "done"
        except OSError as error:
            # Most often the pod does not accept the certificate. Not at info level: crews can cause it.
            _log.debug("tls_handshake_failed", error=str(error))
        finally:
            self._metrics.handshakes.labels(result).inc()

    async def _refresh(self) -> None:
        while True:
            await asyncio.sleep(REFRESH_SECONDS)
            with contextlib.suppress(OSError):
                if self._files.refresh():
                    self._report()

    def _report(self) -> None:
        files = self._files
        self._metrics.expiry.set(files.current.expires_at.timestamp())
        self._metrics.rejected.set(files.problem is not None)
        expires_at = files.current.expires_at.isoformat()
        if files.problem is not None:
            _log.error("tls_certificate_rejected", problem=files.problem, serves_until=expires_at)
        elif files.is_expired():
            _log.error("tls_certificate_expired", expired_at=expires_at)
        else:
            _log.info("tls_certificate_loaded", expires_at=expires_at)
