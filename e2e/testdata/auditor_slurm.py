"""The records that AUDITOR's Slurm collectors make of a configuration, by their
documentation. The programs are in Rust and are not installed here.

    auditor_slurm.py collector CONFIG SACCT
    auditor_slurm.py epilog CONFIG FOLDER     with a file of scontrol show job --details for each job

Prints a JSON object: records by id, and dropped with the reason by the id of a job.
"""

import json
import re
import subprocess
import sys
import time
from pathlib import Path

import yaml

UNKNOWN = {"", "UNLIMITED", "Partition_Limit", "INVALID", "Unknown"}


def local(text):
    """Seconds since 1970 of a local time; the collector takes the offset of now."""
    return int(time.mktime(time.strptime(text, "%Y-%m-%dT%H:%M:%S")))


def span(text):
    found = re.fullmatch(r"(?:(\d{1,3})-)?(?:(\d+):)?(\d+):(\d+)(?:\.\d+)?", text)
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def parse_json(text):
    text = text[1:] if text.startswith('"') else text
    text = text[:-1] if text.endswith('"') else text
    if '"' not in text:
        text = text.replace("'", '"')
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    if isinstance(found, dict) and all(isinstance(v, str) for v in found.values()):
        return found
    return {}


TYPES = {
    "Integer": int,
    "IntegerMega": lambda text: int(text[:-1]),
    "Time": span,
    "String": str,
    "DateTime": local,
    "Id": lambda text: text.split("(")[0],
    "Json": parse_json,
}


def fields(config):
    """The columns with their types; the first place where one is named decides."""
    types, empty = {}, set()
    for part, default in (("sites", "String"), ("meta", "String"), ("components", "Integer")):
        for one in config.get(part) or ([{"key": "NCPUS"}] if part == "components" else []):
            conditions = [one.get("only_if")] + [score.get("only_if") for score in one.get("scores") or []]
            if "key" in one:
                types.setdefault(one["key"], one.get("key_type", default))
                if one.get("key_allow_empty"):
                    empty.add(one["key"])
            for condition in conditions:
                if condition:
                    types.setdefault(condition["key"], "String")
    fixed = {"JobID": "String", "Start": "DateTime", "End": "DateTime", "Group": "String", "User": "String", "State": "String"}
    for name, kind in fixed.items():
        types.setdefault(name, kind)
    return types, empty


def rows(config, sacct, types):
    wanted = config.get("job_filter", {"status": ["completed"]})
    command = [sacct, "-a", "--format", ",".join(types), "--noconvert", "--noheader", "-S", "2020-01-01T00:00:00", "-E", "now", "-P"]
    for option, key, default in (("-s", "status", ["completed"]), ("-r", "partition", []), ("-u", "user", []), ("-g", "group", []), ("-A", "account", [])):
        values = wanted.get(key, default)
        if values:
            command += [option, ",".join(values)]
    text = subprocess.run(command, check=True, capture_output=True).stdout.decode("utf-8", "replace")
    for line in text.split("\n"):
        row = dict(zip(types, line.split("|")))
        if "JobID" in row:  # the rest of a text with a line break has none
            yield row


def value(row, name, types, empty):
    """The value of a column, None where it is missing."""
    text = row.get(name, "")
    if text == "" and name in empty:
        return {} if types[name] == "Json" else ""
    if text in UNKNOWN:
        return None
    try:
        return TYPES[types[name]](text)
    except (AttributeError, ValueError):
        return None


def holds(condition, read):
    if not condition:
        return True
    found = read(condition["key"])
    return found is not None and re.search(condition["matches"], str(found)) is not None


def components(config, default, read):
    made = []
    for one in config.get("components") or default:
        if not holds(one.get("only_if"), read):
            continue
        amount = read(one["key"])
        if amount is None:
            amount = one.get("default_value")
        if amount is None:
            raise KeyError("component " + one["name"])
        scores = [{"name": s["name"], "value": float(s["value"])} for s in one.get("scores") or [] if holds(s.get("only_if"), read)]
        made.append({"name": one["name"], "amount": int(amount), "scores": scores})
    return made


def collector_record(config, prefix, row, batch, types, empty):
    def read(name):
        found = value(row, name, types, empty)
        return value(batch, name, types, empty) if found is None else found

    site = next((s["name"] for s in config.get("sites") or [{"name": "NOT_CONFIGURED"}] if holds(s.get("only_if"), read)), None)
    if site is None:
        raise KeyError("site")
    meta = {}
    for one in config.get("meta") or []:
        found = read(one["key"])
        if types[one["key"]] == "Json":
            meta.update({k: [v] for k, v in (found or {}).items()})
        elif found is None:
            raise KeyError("meta " + one["name"])
        else:
            meta[one["name"]] = [str(found)]
    for name, found in (("site_id", site), ("user_id", read("User")), ("group_id", read("Group"))):
        if found is None:
            raise KeyError(name)
        meta[name] = [found]
    start, stop = read("Start"), read("End")
    if start is None or stop is None:
        raise KeyError("Start or End")
    made = components(config, [{"name": "Cores", "key": "NCPUS"}], read)
    return {"record_id": f"{prefix}-{row['JobID']}", "meta": meta, "components": made, "start": start, "stop": stop}


def collector(config, sacct):
    types, empty = fields(config)
    all_rows = list(rows(config, sacct, types))
    by_id = {row["JobID"]: row for row in all_rows}
    records, dropped = {}, {}
    for row in all_rows:
        job = row["JobID"]
        if re.match(r"^[0-9_]+\.(?:batch$|[0-9]*$|extern$)", job):
            continue
        if row.get("State", "").startswith("CANCELLED") and row.get("Start", "") in UNKNOWN:
            continue
        try:
            made = collector_record(config, config.get("record_prefix", "slurm"), row, by_id.get(job + ".batch", {}), types, empty)
            records.setdefault(made["record_id"], made)
        except KeyError as missing:
            dropped[job] = missing.args[0]
    return {"records": records, "dropped": dropped}


def epilog(config, folder):
    records = {}
    for path in sorted(Path(folder).glob("[0-9]*")):
        keys = dict(pair.split("=", 1) for pair in path.read_text("utf-8", "replace").split() if "=" in pair)
        if "UserId" not in keys:
            raise SystemExit(f"{path} has no job: {keys}")
        meta = {"site_id": [config.get("site_id", "none")], "user_id": [keys["UserId"].split("(")[0]], "group_id": [keys["GroupId"].split("(")[0]]}
        name = f"{config.get('record_prefix', 'slurm')}-{path.name}"
        made = components(config, [{"name": "Cores", "key": "NumCPUs"}], keys.get)
        records[name] = {"record_id": name, "meta": meta, "components": made, "start": local(keys["StartTime"]), "stop": local(keys["EndTime"])}
    return {"records": records, "dropped": {}}


def main():
    kind, config, source = sys.argv[1:]
    with open(config, encoding="utf-8") as file:
        config = yaml.safe_load(file)
    json.dump({"collector": collector, "epilog": epilog}[kind](config, source), sys.stdout)


main()
