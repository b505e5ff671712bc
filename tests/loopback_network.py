"""What lies between a client and a service, on loopback: a certificate authority, servers with TLS, and a proxy."""

from __future__ import annotations

import asyncio
import base64
import ipaddress
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import NameOID

from tests.server_thread import ServerThread


class Authority:
    """A certificate authority with the files ``ca.pem``, and ``NAME.pem`` and ``NAME.key`` for each ``issue(NAME)``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "authority of the test")])
        self.file = folder / "ca.pem"
        own = self._certificate(self._name, self._key.public_key()).add_extension(
            x509.BasicConstraints(True, None), True
        )
        self.file.write_bytes(own.sign(self._key, hashes.SHA256()).public_bytes(Encoding.PEM))

    def issue(self, name: str, password: bytes = b"") -> tuple[str, str]:
        """Return the files of a certificate for loopback addresses, and of its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = [x509.IPAddress(ipaddress.ip_address(one)) for one in ("127.0.0.1", "::1")]
        certificate = self._certificate(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]), key.public_key())
        certificate = certificate.add_extension(x509.SubjectAlternativeName(names), False)
        files = self.folder / f"{name}.pem", self.folder / f"{name}.key"
        files[0].write_bytes(certificate.sign(self._key, hashes.SHA256()).public_bytes(Encoding.PEM))
        hidden: KeySerializationEncryption = BestAvailableEncryption(password) if password else NoEncryption()
        files[1].write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, hidden))
        return str(files[0]), str(files[1])

    def _certificate(self, subject: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        builder = x509.CertificateBuilder().subject_name(subject).issuer_name(self._name).public_key(key)
        builder = builder.serial_number(x509.random_serial_number())
        return builder.not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))


class Wire(ServerThread):
    """A server that answers every POST request with ``reply``. It counts connections and requests.

    With ``tls``, it has TLS. With ``closes``, it closes each connection after one reply, without announcing it.
    """

    def __init__(
        self, reply: bytes, tls: ssl.SSLContext | None = None, closes: bool = False, host: str = "127.0.0.1"
    ) -> None:
        self.reply, self.tls, self.closes, self.host = reply, tls, closes, host
        self.connections = self.requests = 0
        self.clients: list[str] = []

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http{'s' if self.tls else ''}://{host}:{self.port}/v1"

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[int]:
        server = await asyncio.start_server(self._serve_connection, self.host, 0, ssl=self.tls)
        async with server:
            yield server.sockets[0].getsockname()[1]

    async def _serve_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        certificate = writer.get_extra_info("peercert")
        self.clients += [str(certificate["subject"])] if certificate else []
        try:
            while await _request(reader):
                self.requests += 1
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(self.reply), self.reply))
                await writer.drain()
                if self.closes:
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


class Proxy(ServerThread):
    """A proxy for HTTP and, with CONNECT, for HTTPS. ``user`` is ``name:password``; "" if everybody may use it."""

    def __init__(self, user: str = "") -> None:
        self.user = user
        self.targets: list[str] = []
        self.refused = 0

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[int]:
        server = await asyncio.start_server(self._serve_connection, "127.0.0.1", 0)
        async with server:
            yield server.sockets[0].getsockname()[1]

    async def _serve_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head, body = await _request(reader)
            method, target, _ = head.split(b" ", 2)
            login = base64.b64encode(self.user.encode())
            if self.user and b"proxy-authorization: basic " + login.lower() not in head.lower():
                self.refused += 1
                writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
                return
            self.targets.append(target.decode())
            place = urlsplit(f"//{target.decode()}" if method == b"CONNECT" else target.decode())
            there, to = await asyncio.open_connection(place.hostname, place.port)
            if method == b"CONNECT":
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                to.write(head + body)
            await asyncio.gather(_pipe(reader, to), _pipe(there, writer))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


async def _request(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    """Return the head and the body of a request."""
    head = await reader.readuntil(b"\r\n\r\n")
    _, named, length = head.lower().partition(b"content-length:")
    return head, await reader.readexactly(int(length.split()[0]) if named else 0)


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(1 << 16):
        writer.write(data)
        await writer.drain()
    writer.close()
