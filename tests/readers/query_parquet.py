"""Answers queries to tables in Parquet by DuckDB, as JSON: one list of rows for each query."""

import json
import os
import sys

import duckdb


def main(directory, queries):
    os.chdir(directory)
    print(json.dumps([duckdb.sql(query).fetchall() for query in queries], default=str))


main(sys.argv[1], sys.argv[2:])
