"""Reads a .cubex file as its users' tools do: cube.py FILE. Prints as JSON, by metric and call path, the exclusive value of each location."""

import json
import sys

from pycubexr import CubexParser


def path(cnode):
    names = []
    while cnode is not None:
        names.insert(0, cnode.region.name)
        cnode = cnode.parent
    return names


def main():
    found = {}
    with CubexParser(sys.argv[1]) as cubex:
        locations = len(cubex.get_locations())
        for metric in cubex.get_metrics():
            values = cubex.get_metric_values(metric)
            rows = []
            for cnode in cubex.all_cnodes():
                rows.append({"path": path(cnode), "values": [float(value) for value in values.cnode_values(cnode)]})
            found[metric.name] = rows
    json.dump({"locations": locations, "metrics": found}, sys.stdout)


main()
