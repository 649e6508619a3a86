"""Pushes records with one of the clients of python-auditor, unmodified, to servers that
may vanish at any moment, until each record was taken.

    auditor_pusher.py async|blocking|queued ADD_URL UPDATE_URL PREFIX COUNT OUT [CERT KEY CA]

Of each four records one is added closed, one is added open and closed by an update, one
is closed by an update that comes first (not by the queued client, which sends what it
adds first), and one is added twice. OUT becomes a JSON object of what must be there:
by id, the start and the stop in microseconds and the cores.
"""

import asyncio
import inspect
import json
import os
import sqlite3
import sys
import time
from datetime import datetime, timedelta, timezone

import pyauditor as pa

MODE, ADD, UPDATE, PREFIX, COUNT, OUT = sys.argv[1:7]
TLS = sys.argv[7:10]
T0 = datetime(2024, 2, 24, 0, 27, 58, 43079, tzinfo=timezone.utc)
PAUSE = 0.1
queue = OUT + ".queue"


def micros(t):
    return int((t - datetime(1970, 1, 1, tzinfo=timezone.utc)) / timedelta(microseconds=1))


class Job:
    def __init__(self, i):
        self.id = f"{PREFIX}{i}"
        self.start = T0 + timedelta(seconds=i)
        self.stop = self.start + timedelta(seconds=60 + i % 1000, microseconds=i)
        self.cores = 1 + i % 64

    def record(self, closed):
        r = pa.Record(self.id, self.start).with_component(pa.Component("Cores", self.cores))
        r = r.with_meta(pa.Meta().insert("site_id", [PREFIX]))
        return r.with_stop_time(self.stop) if closed else r


async def call(f, *args):
    result = f(*args)
    return await result if inspect.isawaitable(result) else result


async def pause():
    if MODE == "blocking":
        time.sleep(PAUSE)  # there is no loop
    else:
        await asyncio.sleep(PAUSE)


async def until(f, *args):
    """Calls f until it succeeds; a record that exists was taken before."""
    while True:
        try:
            return await call(f, *args)
        except RuntimeError as e:
            if str(e) == "RECORD_EXISTS":
                return None
            if " 4" in str(e) and "status" in str(e):
                sys.exit(f"{MODE}: {e}")
        await pause()


async def push(adder, updater, jobs):
    """Pushes four jobs, each in another way."""
    a, b, c, d = jobs
    await until(adder.bulk_insert, [a.record(True), b.record(False)])
    await until(updater.update, b.record(True))
    if MODE != "queued":
        await until(updater.update, c.record(True))
    await until(adder.add, c.record(MODE == "queued"))
    await until(adder.add, d.record(True))
    await until(adder.add, d.record(True))


async def drained():
    """Waits until the queue of the queued client is empty."""
    while True:
        try:
            with sqlite3.connect(queue, timeout=5) as db:
                left = sum(db.execute(f"select count(*) from {t}").fetchone()[0] for t in ("inserts", "updates"))
            if left == 0:
                return
        except sqlite3.OperationalError:
            pass  # the client holds it
        await asyncio.sleep(0.2)


async def client(url):
    builder = pa.AuditorClientBuilder().connection_string(url).timeout(10)
    if TLS:
        builder = builder.with_tls(*TLS)
    if MODE == "async":
        return builder.build()
    if MODE == "blocking":
        return builder.build_blocking()
    return await builder.send_interval(1).database_path(f"sqlite://{queue}?mode=rwc").build_queued()


async def main():
    jobs = [Job(i) for i in range(int(COUNT))]
    adder = await client(ADD)
    updater = adder if MODE == "queued" or UPDATE == ADD else await client(UPDATE)
    fours = [jobs[i : i + 4] for i in range(0, len(jobs), 4)]
    if MODE == "async":
        async def work(mine):
            for four in mine:
                await push(adder, updater, four)

        await asyncio.gather(*(work(fours[n::16]) for n in range(16)))
    else:
        for four in fours:
            await push(adder, updater, four)
    if MODE == "queued":
        await drained()
    with open(OUT, "w") as f:
        json.dump({j.id: [micros(j.start), micros(j.stop), j.cores] for j in jobs}, f)
    print(f"{MODE}: {len(jobs)} records", flush=True)
    os._exit(0)  # the clients' threads may abort while the interpreter is taken down


if MODE == "blocking":
    # The blocking client runs its own loop, so there must be none here.
    coroutine = main()
    try:
        coroutine.send(None)
    except StopIteration:
        pass
else:
    asyncio.run(main())
