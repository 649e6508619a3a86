"""Drives one of the clients of python-auditor, unmodified, against a server.

    auditor_client.py async|blocking|queued URL PREFIX DIR [CERT KEY CA]

PREFIX starts the ids of all records, so that several runs share a server. What
the server must answer is worked out here from the records that were sent. The
exit code is 0 when all of it came.
"""

import asyncio
import inspect
import json
import os
import sys
from datetime import datetime, timedelta, timezone

import pyauditor as pa

UTC = timezone.utc
T0 = datetime(2024, 2, 24, 0, 27, 58, 43079, tzinfo=UTC)
MODE, URL, PREFIX, DIR = sys.argv[1:5]
TLS = sys.argv[5:8]
checks = 0


def check(got, want, what):
    global checks
    checks += 1
    if got != want:
        sys.exit(f"{MODE}: {what}:\n got  {got!r}\n want {want!r}")


async def call(f, *args):
    result = f(*args)
    return await result if inspect.isawaitable(result) else result


async def fails(f, *args):
    """The text of the error that the call must raise."""
    try:
        await call(f, *args)
    except RuntimeError as e:
        return str(e)
    sys.exit(f"{MODE}: {f} {args} did not fail")


class Sent:
    """A record as it was sent, and as it must come back."""

    def __init__(self, name, start, stop, meta, components):
        self.id = PREFIX + name
        self.start = T0 + timedelta(seconds=start)
        self.stop = None if stop is None else T0 + timedelta(seconds=stop)
        self.meta = dict(meta, run=[PREFIX])
        self.components = components

    @property
    def runtime(self):
        return None if self.stop is None else int((self.stop - self.start).total_seconds())

    def build(self):
        r = pa.Record(self.id, self.start)
        if self.stop is not None:
            r = r.with_stop_time(self.stop)
        meta = pa.Meta()
        for key, values in self.meta.items():
            meta = meta.insert(key, values)
        r = r.with_meta(meta)
        for name, amount, scores in self.components:
            c = pa.Component(name, amount)
            for score, value in scores:
                c = c.with_score(pa.Score(score, value))
            r = r.with_component(c)
        return r

    def shown(self):
        naive = lambda t: None if t is None else t.astimezone(UTC).replace(tzinfo=None)
        return (self.id, naive(self.start), naive(self.stop), self.runtime, self.meta, self.components)

    def amount(self, name):
        return next((a for n, a, _ in self.components if n == name), None)


def came(r):
    """A record of the client in the form of Sent.shown."""
    meta = {k: r.meta.get(k) for k in json.loads(r.to_json())["meta"]}
    components = [(c.name, c.amount, [(s.name, s.value) for s in c.scores]) for c in r.components]
    return (r.record_id, r.start_time, r.stop_time, r.runtime, meta, components)


def sent_records():
    scores = [("HEPSPEC06", 10.0), ("one", 1.0), ("odd", 0.1), ("small", 1e-9), ("large", 1.7e300)]
    return [
        Sent("a", 0, 7200.000001, {"site": ["x"], "group": ["g2", "g1"]}, [("Cores", 8, scores), ("Memory", 200, [])]),
        Sent("b", -3600, 3600.5, {"site": ["y"], "group": ["g1"]}, [("Memory", 16, []), ("Cores", 4, [("HEPSPEC06", 21.5)])]),
        Sent("c", 3600, None, {"site": ["x"]}, [("Cores", 8, [])]),
        Sent("d", 7200, 5400.25, {"empty": []}, []),
        Sent("e", 60, None, {"site": ["y"], "group": ["g2", "ё\n\"\\"]}, [("GPUs", 1, [])]),
        Sent("f", 600.123456, 2400.123455, {"k": ["a", "a"]}, [("Cores", 0, [])]),
        Sent("g", 601, 3601, {}, [("Memory", 3_000_000_000, []), ("Cores", 2, [])]),
    ]


def by_stop(records):
    late = datetime.max.replace(tzinfo=UTC)
    return sorted(records, key=lambda s: s.stop or late)


def queries():
    """Pairs of a query and what says which records it means, in which order."""
    op, val = pa.Operator, pa.Value
    at = T0 + timedelta(seconds=600.123456)
    end = T0 + timedelta(seconds=3600.5)
    compare = {
        "gt": lambda a, b: a > b, "gte": lambda a, b: a >= b, "lt": lambda a, b: a < b,
        "lte": lambda a, b: a <= b, "equals": lambda a, b: a == b,
    }
    for name, holds in compare.items():
        make = lambda v, name=name: getattr(op(), name)(v)
        if name != "equals":
            yield f"start {name}", pa.QueryBuilder().with_start_time(make(val.set_datetime(at))), lambda s, h=holds: h(s.start, at)
            yield f"stop {name}", pa.QueryBuilder().with_stop_time(make(val.set_datetime(end))), lambda s, h=holds: s.stop is not None and h(s.stop, end)
        yield f"runtime {name}", pa.QueryBuilder().with_runtime(make(val.set_runtime(7200))), lambda s, h=holds: s.stop is not None and h(s.runtime, 7200)
        yield f"component {name}", pa.QueryBuilder().with_component_query(pa.ComponentQuery().component_operator("Cores", make(val.set_count(4)))), lambda s, h=holds: s.amount("Cores") is not None and h(s.amount("Cores"), 4)
    yield "id", pa.QueryBuilder().with_record_id(PREFIX + "d"), lambda s: s.id == PREFIX + "d"
    yield "window", pa.QueryBuilder().with_stop_time(op().gte(val.set_datetime(end)).lt(val.set_datetime(T0 + timedelta(seconds=5401)))), lambda s: s.stop is not None and end <= s.stop < T0 + timedelta(seconds=5401)


def meta_query(contains=None, lacks=None):
    m = pa.MetaOperator()
    if contains:
        m = m.contains(contains)
    if lacks:
        m = m.does_not_contain(lacks)
    return pa.MetaQuery().meta_operator("group", m)


def meta_queries():
    has = lambda s, *v: all(x in s.meta.get("group", []) for x in v)
    lacks = lambda s, *v: "group" in s.meta and not any(x in s.meta["group"] for x in v)
    yield "contains", meta_query(["g1"]), lambda s: has(s, "g1")
    yield "contains all", meta_query(["g1", "g2"]), lambda s: has(s, "g1", "g2")
    yield "odd text", meta_query(["ё\n\"\\"]), lambda s: has(s, "ё\n\"\\")
    yield "lacks", meta_query(None, ["g1"]), lambda s: lacks(s, "g1")
    yield "contains and lacks", meta_query(["g2"], ["g1"]), lambda s: has(s, "g2") and lacks(s, "g1")


def mine(records):
    return [came(r) for r in records if r.record_id.startswith(PREFIX)]


def shown(records):
    return [s.shown() for s in records]


async def ask(client, query):
    return mine(await call(client.advanced_query, query if isinstance(query, str) else query.build()))


async def check_queries(client, sent):
    for what, query, means in list(queries()):
        check(await ask(client, query), shown(filter(means, by_stop(sent))), what)
    for what, meta, means in meta_queries():
        check(await ask(client, pa.QueryBuilder().with_meta_query(meta)), shown(filter(means, by_stop(sent))), what)
    last = datetime.max.replace(tzinfo=UTC)
    keys = {
        "start_time": lambda s: s.start, "stop_time": lambda s: s.stop or last,
        "runtime": lambda s: last.timestamp() if s.runtime is None else s.runtime, "record_id": lambda s: s.id,
    }
    only = lambda: pa.QueryBuilder().with_meta_query(pa.MetaQuery().meta_operator("run", pa.MetaOperator().contains([PREFIX])))
    for column, key in keys.items():
        check(await ask(client, only().sort_by(pa.SortBy().ascending(column))), shown(sorted(sent, key=key)), "ascending " + column)
        check(await ask(client, only().sort_by(pa.SortBy().descending(column))), shown(sorted(sent, key=key, reverse=True)), "descending " + column)
        check(await ask(client, only().sort_by(pa.SortBy().descending(column)).limit(3)), shown(sorted(sent, key=key, reverse=True)[:3]), "descending " + column + ", three")
    check(await ask(client, only().limit(2)), shown(by_stop(sent)[:2]), "limit")
    check(await ask(client, only().limit(0)), [], "limit 0")


async def check_reads(client, sent):
    check(mine(await call(client.get)), shown(by_stop(sent)), "get")
    since = T0 + timedelta(seconds=600.123456)
    check(mine(await call(client.get_started_since, since)), shown(s for s in by_stop(sent) if s.start >= since), "get_started_since")
    check(mine(await call(client.get_stopped_since, since)), shown(s for s in by_stop(sent) if s.stop and s.stop >= since), "get_stopped_since")
    for s in sent:
        check(came(await call(client.get_single_record, s.id)), s.shown(), "get_single_record")
    text = await fails(client.get_single_record, PREFIX + "nobody")
    check(text.startswith("Reqwest Error: "), True, text)


async def check_refusals(client, sent):
    check(await fails(client.add, sent[0].build()), "RECORD_EXISTS", "add again")
    new = Sent("new", 0, 1, {}, [])
    check(await fails(client.bulk_insert, [new.build(), sent[1].build()]), "RECORD_EXISTS", "bulk with a record that exists")
    check(await ask(client, "record_id=" + new.id), [], "nothing of the bulk is stored")
    text = await fails(client.update, new.build())
    check(text.startswith("Reqwest Error: HTTP status client error (404 Not Found)"), True, text)
    text = await fails(client.advanced_query, "nonsense=1")
    check(text.startswith("Reqwest Error: HTTP status client error (400 Bad Request)"), True, text)


async def settled(client, want):
    """Waits until the queue has been sent."""
    for _ in range(300):
        if mine(await call(client.get)) == want:
            return
        await asyncio.sleep(0.1)
    check(mine(await call(client.get)), want, "the queue was sent")


async def main():
    builder = pa.AuditorClientBuilder().connection_string(URL).timeout(20)
    if TLS:
        builder = builder.with_tls(*TLS)
    if MODE == "async":
        client = builder.build()
    elif MODE == "blocking":
        client = builder.build_blocking()
    else:
        client = await builder.send_interval(1).database_path(f"sqlite://{DIR}/{PREFIX}queue.db?mode=rwc").build_queued()
    queued = MODE == "queued"
    check(await call(client.health_check), True, "health_check")

    sent = sent_records()
    await call(client.add, sent[0].build())
    await call(client.bulk_insert, [s.build() for s in sent[1:]])
    if queued:
        await call(client.add, sent[0].build())  # the queue forgets it
        await settled(client, shown(by_stop(sent)))
    await check_reads(client, sent)
    await check_queries(client, sent)
    if not queued:
        await check_refusals(client, sent)

    sent[2].stop = T0 + timedelta(seconds=9000.000009)
    await call(client.update, sent[2].build())
    sent[0].stop = T0 + timedelta(seconds=-1.5)  # again, and before its start
    await call(client.update, sent[0].build())
    if queued:
        await settled(client, shown(by_stop(sent)))
    await check_reads(client, sent)
    await call(client.bulk_insert, [])
    if queued:
        await call(client.stop)
    print(f"{MODE}: {checks} checks", flush=True)
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
