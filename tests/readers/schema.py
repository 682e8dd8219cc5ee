"""Whether JSON is as its schema says: schema.py SCHEMA FILE. FILE may have several values, one on a line."""

import json
import sys

from jsonschema import Draft202012Validator


def main():
    with open(sys.argv[1]) as file:
        schema = json.load(file)
    Draft202012Validator.check_schema(schema)
    validator = Draft202012Validator(schema)
    with open(sys.argv[2]) as file:
        text = file.read()
    try:
        values = [json.loads(text)]
    except json.JSONDecodeError:
        values = [json.loads(line) for line in text.splitlines()]
    for value in values:
        for error in validator.iter_errors(value):
            sys.exit(f"{error.json_path}: {error.message[:500]}")
    # A schema that takes anything would say nothing.
    broken = dict(values[-1], schema="another/1")
    if validator.is_valid(broken) or validator.is_valid({}):
        sys.exit("the schema takes what it should not")


main()
