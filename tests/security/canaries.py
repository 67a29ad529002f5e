"""Secrets that are planted to be searched for, in all the forms in which they could be left behind."""

import base64
import gzip
import secrets
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field

import zstandard

_SHORTEST = 12


@dataclass(frozen=True, order=True)
class CanaryMatch:
    """A secret that was seen: which, in which form, and where."""

    secret: str
    form: str
    place: str


@dataclass
class Canaries:
    """Draws secrets that begin with one mark, and knows others by their text.

    The mark is made of letters and digits, so that JSON, URLs and shells leave it as it is, while what
    follows it is made of all that they change.
    """

    mark: str = field(default_factory=lambda: f"cnry{secrets.token_hex(8)}")
    _known: dict[str, list[tuple[str, bytes]]] = field(default_factory=dict)
    _drawn: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.know("mark", self.mark)

    def draw(self, name: str, tail: str = "+/\"'&%=") -> str:
        """A new secret; the sights of it carry `name`."""
        self._drawn[name] = f"{self.mark}-{name}-{secrets.token_hex(6)}{tail}"
        return self._drawn[name]

    def __getitem__(self, name: str) -> str:
        return self._drawn[name]

    def know(self, name: str, text: str) -> str:
        """A secret that was drawn elsewhere, or one more of that name; gives it back."""
        assert len(text) >= _SHORTEST, f"{name} is too short to be searched for"
        self._known.setdefault(name, []).extend(forms(text))
        return text

    def sights(self, place: str, content: bytes) -> set[CanaryMatch]:
        """What is in `content`, also where it is compressed."""
        found = set()
        for body in (content, *unpacked(content)):
            for name, known in self._known.items():
                for form, text in known:
                    if text in body:
                        found |= {CanaryMatch(one, form, place) for one in self._which(name, body)}
        return found

    def _which(self, name: str, body: bytes) -> Iterable[str]:
        if name != "mark":
            return [name]
        prefixes = {one: f"{self.mark}-{one}-".encode() for one in self._drawn}
        return [one for one, prefix in prefixes.items() if prefix in body] or [name]


def forms(text: str) -> Iterable[tuple[str, bytes]]:
    """The text as it stands, and the part of its base64 that does not depend on what is around it."""
    raw = text.encode()
    yield "plain", raw
    for shift in range(3):
        whole = base64.b64encode(b"\0" * shift + raw)
        # The first and the last group hold bits of the neighbours.
        inner = whole[4 if shift else 0 : -4]
        yield "base64", inner
        if (other := inner.translate(bytes.maketrans(b"+/", b"-_"))) != inner:
            yield "base64url", other


def unpacked(content: bytes) -> list[bytes]:
    """The content of a gzip or zstd file, as far as it can be read."""
    if content.startswith(zstandard.FRAME_HEADER):
        return [_until_damage(content)]
    if not content.startswith(b"\x1f\x8b"):
        return []
    try:
        return [gzip.decompress(content)]
    except (OSError, EOFError, zlib.error):
        return [zlib.decompressobj(31).decompress(content)]


def _until_damage(content: bytes) -> bytes:
    """What a zstd file holds before its end or its first damage."""
    parts: list[bytes] = []
    with zstandard.ZstdDecompressor().stream_reader(content, read_across_frames=True) as reader:
        try:
            while part := reader.read(1 << 20):
                parts.append(part)
        except zstandard.ZstdError:
            pass
    return b"".join(parts)
