"""Reads a Parquet file with four libraries and prints what each finds: types as the library names them, and rows of texts."""

import datetime
import decimal
import json
import math
import sys
import uuid

import duckdb
import pandas
import polars
import pyarrow.parquet

PATH = sys.argv[3]


def text(value):
    """The same for the same value, whichever library gave it."""
    match value:
        case None | bool():
            return value
        case _ if value is pandas.NA or value is pandas.NaT:
            return None
        case float() if math.isnan(value):
            return "nan"
        case float() | int():
            return repr(value)
        case decimal.Decimal():
            return format(value, "f")
        case bytes() | bytearray():
            return value.hex()
        case uuid.UUID():
            return value.hex
        case datetime.datetime() if value.tzinfo is not None:
            return value.astimezone(datetime.timezone.utc).isoformat().replace("+00:00", "Z")
        case datetime.datetime() | datetime.date() | datetime.time():
            return value.isoformat()
        case str():
            return value
    return [text(one) for one in value]


def rows(dicts):
    return [{name: text(value) for name, value in row.items()} for row in dicts]


def with_pyarrow():
    table = pyarrow.parquet.read_table(PATH)
    types = {field.name: str(field.type) for field in table.schema}
    return {"types": types, "rows": rows(table.to_pylist())}


def with_duckdb():
    connection = duckdb.connect()
    connection.execute("set timezone = 'UTC'")
    described = connection.execute("describe select * from read_parquet(?)", [PATH]).fetchall()
    found = connection.execute("select * from read_parquet(?)", [PATH])
    names = [column[0] for column in found.description]
    return {
        "types": {row[0]: row[1] for row in described},
        "rows": rows(dict(zip(names, row)) for row in found.fetchall()),
    }


def with_polars():
    frame = polars.read_parquet(PATH)
    types = {name: str(kind) for name, kind in frame.schema.items()}
    return {"types": types, "rows": rows(frame.rows(named=True))}


def with_pandas():
    frame = pandas.read_parquet(PATH, dtype_backend="pyarrow")
    types = {name: str(kind) for name, kind in frame.dtypes.items()}
    columns = {name: list(frame[name].array.__arrow_array__().to_pylist()) for name in frame.columns}
    return {
        "types": types,
        "rows": rows(dict(zip(columns, values)) for values in zip(*columns.values())),
    }


print(json.dumps({"pyarrow": with_pyarrow(), "duckdb": with_duckdb(), "polars": with_polars(), "pandas": with_pandas()}))
