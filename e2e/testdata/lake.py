"""Reads a folder of archives with pyarrow and with DuckDB, and prints what each adds up."""
import json
import sys

import duckdb
import pyarrow.dataset

folder = sys.argv[1]



def by_pyarrow():
    data = pyarrow.dataset.dataset(folder, format="parquet", partitioning="hive")
    count, months, sums = 0, {}, {}
    for batch in data.to_batches(columns=["components", "start_time", "stop_time", "year", "month"]):
        for row in zip(*(batch.column(n) for n in ("components", "start_time", "stop_time", "year", "month"))):
            components, start, stop, year, month = row
            count += 1
            key = "%d-%02d" % (year.as_py(), month.as_py())
            months[key] = months.get(key, 0) + 1
            for c in json.loads(components.as_py()):
                key = c["kind"] + ":" + c["name"]
                length = max(0, stop.value - start.value) if c["kind"] == "rate" else 1
                sums[key] = sums.get(key, 0) + c["amount"] * length
    return {"records": count, "months": months, "sums": {k: str(v) for k, v in sums.items()}}


def by_duckdb():
    db = duckdb.connect()
    db.execute("SET TimeZone = 'UTC'")
    files = "read_parquet('%s/**/*.parquet', hive_partitioning = true)" % folder
    months = db.execute("SELECT year, month, count(*) FROM %s GROUP BY ALL" % files).fetchall()
    sums = db.execute("""
        SELECT c.kind || ':' || c.name, sum(c.amount::HUGEINT * CASE c.kind
                 WHEN 'rate' THEN greatest(0, epoch_us(stop_time) - epoch_us(start_time))::HUGEINT ELSE 1::HUGEINT END)
        FROM (SELECT start_time, stop_time,
                unnest(from_json(components, '[{"name": "VARCHAR", "amount": "BIGINT", "kind": "VARCHAR"}]')) AS c FROM %s)
        GROUP BY 1""" % files).fetchall()
    return {
        "records": sum(n for _, _, n in months), "months": {"%d-%02d" % (int(y), int(m)): n for y, m, n in months},
        "sums": {k: str(int(v)) for k, v in sums},
    }


json.dump({"pyarrow": by_pyarrow(), "duckdb": by_duckdb()}, sys.stdout)
