"""Signs of life for work that takes minutes."""

import time

SECONDS = 20


def counted(items, done):
    """Passes items on; every 20 seconds says how many are done: "[text] 1200 help pages read"."""
    told = time.monotonic()
    for count, item in enumerate(items, 1):
        yield item
        if time.monotonic() - told >= SECONDS:
            told = time.monotonic()
            print(f"[text] {count} {done}", flush=True)
