"""Eight processes that spend from one account at the same time, each until it has tried all its snapshots.

    python writers.py PLACE KEY_FILE FOLDER

Prints one line a try: the writer, and what became of it. The ledger is opened after the fork, in each process anew.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from dualmandate.errors import Refusal
from dualmandate.ledger import Request, open_ledger, read_key
from dualmandate.population import PrivacyLoss

WRITERS, TRIES = 8, 4
PLAN = "a1" * 32


def spend(writer: int, place: str, key_file: str, folder: str) -> None:
    """Try to reserve for four snapshots of one's own, and once for one that all writers want."""
    ledger = open_ledger(place, read_key(Path(key_file)), folder=Path(folder))
    for snapshot in ("the same", *(f"{writer}-{number}" for number in range(TRIES))):
        request = Request("school children", PLAN, snapshot, PrivacyLoss.pure("1/3"), "child", user=f"user {writer}")
        try:
            outcome = ledger.reserve(request).name
        except Refusal as refusal:
            outcome = refusal.code
        os.write(1, f"{writer}\t{outcome}\n".encode())


def main(place: str, key_file: str, folder: str) -> int:
    start = time.time() + 0.2
    children = []
    for writer in range(WRITERS):
        child = os.fork()
        if child == 0:
            time.sleep(max(start - time.time(), 0))
            status = 1
            try:
                spend(writer, place, key_file, folder)
                status = 0
            finally:
                os._exit(status)
        children.append(child)
    return sum(os.waitpid(child, 0)[1] != 0 for child in children)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
