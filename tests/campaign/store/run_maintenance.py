"""A program that runs the API server's maintenance on a store, with a later time.

    python -P run_maintenance.py DIRECTORY NAMESPACE MOMENT

Started by `tests.campaign.store.snapshot` in the directory of the product's code, which it uses: accounts,
seals, deletes what has had its time, and sweeps. No other process may have the store open.
"""

import asyncio
import sys
from datetime import datetime
from pathlib import Path

sys.path.insert(0, ".")

from api.maintenance.maintenance_round import MaintenanceRound
from api.maintenance.orphan_blobs import delete_orphans
from api.maintenance.retention import RetentionPolicy
from api.store.accounting import account_batch
from api.store.store import Store

RECORDS = 30 * 86400.0
MOST_ROUNDS = 10_000


async def main(directory: Path, namespace: str, now: datetime) -> None:
    """Run the maintenance. Raises what the API server would log, RuntimeError if it does not converge."""
    store = await Store.open(directory, namespace)
    try:
        keeper = MaintenanceRound(store, RetentionPolicy(RECORDS), 0.0)
        for _ in range(MOST_ROUNDS):
            if not await account_batch(store) + await keeper.run_once(now):
                break
        else:
            raise RuntimeError("there is always more to do")
        await delete_orphans(store, now)
    finally:
        await store.close()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], datetime.fromisoformat(sys.argv[3])))
