"""Reads dashboards with the types that Grafana's own schema is made into, and names what is not of them.

A field that the schema does not know is lost when a dashboard is read and written again; a
value of another type stays, so each is compared with its annotation.
"""
import enum
import json
import sys
import typing

from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models import dashboard, units

# Of Grafana's, and not in these types.
BESIDE = {"definition"}  # of a variable that is a query: its text in the list of variables


def lost(path, have, read):
    """Names the fields of have that read does not have."""
    if isinstance(have, dict) and isinstance(read, dict):
        for key, value in have.items():
            if key not in BESIDE:
                yield from lost(f"{path}.{key}", value, read[key]) if key in read else [f"{path}.{key}: unknown field"]
    elif isinstance(have, list) and isinstance(read, list) and len(have) == len(read):
        for i, (a, b) in enumerate(zip(have, read)):
            yield from lost(f"{path}[{i}]", a, b)
    elif have != read:
        yield f"{path}: {have!r} is read as {read!r}"


def fits(value, kind):
    """Reports whether a value is of an annotation, as far as it says so."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if kind is typing.Any or kind is object or isinstance(kind, typing.ForwardRef):
        return True
    if origin is typing.Union:
        return any(fits(value, k) for k in arguments)
    if origin is typing.Literal:
        return value in arguments
    if origin is list:
        return isinstance(value, list) and all(fits(v, arguments[0]) for v in value)
    if origin is dict:
        return isinstance(value, dict)
    if kind is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if issubclass(kind, enum.Enum):
        return isinstance(value, kind) or any(value == member.value and type(value) is type(member.value) for member in kind)
    return isinstance(value, kind) or isinstance(value, dict) and hasattr(kind, "from_json")  # not all are made objects


def mistyped(path, value):
    """Names the fields below value that are not of their annotation."""
    if isinstance(value, (list, dict)):
        for key, v in value.items() if isinstance(value, dict) else enumerate(value):
            yield from mistyped(f"{path}[{key}]", v)
    elif hasattr(value, "__annotations__") and not isinstance(value, enum.Enum):
        for name, kind in typing.get_type_hints(type(value)).items():
            v = getattr(value, name, None)
            if not fits(v, kind):
                yield f"{path}.{name}: {v!r} is not {kind}"
            yield from mistyped(f"{path}.{name}", v)


def main():
    register_default_plugins()
    known_units = {None} | {text for text in vars(units).values() if isinstance(text, str)}
    faults = []
    for name in sys.argv[1:]:
        with open(name, encoding="utf-8") as f:
            have = json.load(f)
        read = dashboard.Dashboard.from_json(have)
        faults += lost(name, have, json.loads(JSONEncoder().encode(read)))
        faults += mistyped(name, read)
        for panel in read.panels:
            if panel.type_val == "row":
                continue
            if isinstance(panel.options, dict):
                faults.append(f"{name}: {panel.title}: unknown type of panel {panel.type_val!r}")
            if panel.field_config.defaults.unit not in known_units:
                faults.append(f"{name}: {panel.title}: unknown unit {panel.field_config.defaults.unit!r}")
    print("\n".join(faults))


main()
