"""Writes fuzz/seeds/frame: one frame of every kind, as padmm-node/src/frame.rs describes them.

Signatures are zeros, because decoding leaves them to whoever asks who signed. The plan and the cards in
fuzz/seeds are those of `padmm demo sites`.
"""

import pathlib
import struct

PLAN, HEAD, DIGEST, SIGNATURE = bytes(range(32)), b"\x11" * 32, b"\x22" * 32, bytes(64)
ORIGIN = PLAN + struct.pack("<H", 1)
PLACE = struct.pack("<BI", 0, 3)
ANNOUNCE = b"\x09" + ORIGIN + struct.pack("<I", 3) + HEAD + struct.pack("<Q", 5) + HEAD + DIGEST + SIGNATURE


def counted(*items: bytes) -> bytes:
    return struct.pack("<H", len(items)) + b"".join(items)


def payload(is_on_grid: bool, exponent: int, kind: str, values: list[float]) -> bytes:
    return struct.pack(f"<BiI{len(values)}{kind}", is_on_grid, exponent, len(values), *values)


def speech(numbers: bytes) -> bytes:
    return b"\x02" + ORIGIN + PLACE + struct.pack("<Q", 5) + HEAD + numbers + SIGNATURE


FRAMES = {
    "hello": b"\x01" + ORIGIN + b"\x01" + counted(ANNOUNCE)
    + counted(struct.pack("<H", 0) + DIGEST + SIGNATURE) + counted(struct.pack("<H", 2) + SIGNATURE) + SIGNATURE,
    "speech-on-grid": speech(payload(True, -20, "q", [1, -(2**40), 2**53 - 1])),
    "speech-plain": speech(payload(False, 0, "d", [0.5, -1e-3])),
    "status": b"\x03" + ORIGIN + PLACE + struct.pack("<QB", 9, 1) + SIGNATURE,
    "departure": b"\x04" + ORIGIN + struct.pack("<H", 2) + PLACE + SIGNATURE,
    "want": b"\x05" + PLACE,
    "want-plan": b"\x06",
    "plan-text": b"\x07" + 'format = "padmm"\n'.encode(),
    "want-hello": b"\x08",
    "announce": ANNOUNCE,
    "receipt": b"\x0a" + ORIGIN + struct.pack("<HQ", 2, 5) + DIGEST + SIGNATURE,
}  # fmt: skip

if __name__ == "__main__":
    folder = pathlib.Path(__file__).parent / "seeds" / "frame"
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in FRAMES.items():
        (folder / name).write_bytes(content)
