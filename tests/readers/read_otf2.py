"""Reads an archive by the official Python reader of OTF2, and says as JSON how many records of each kind are in it, and what messages say."""

import collections
import json
import sys

import otf2


def main(path):
    records, regions, messages = collections.Counter(), collections.Counter(), []
    with otf2.reader.open(path) as trace:
        for location, event in trace.events:
            kind = type(event).__name__
            records[kind] += 1
            if kind == "Enter":
                regions[event.region.name] += 1
            elif kind in ("MpiSend", "MpiIsend"):
                group = event.communicator.group
                messages.append([location.group.name, event.receiver, event.msg_tag, event.msg_length, len(group.members)])
        print(json.dumps({
            "records": records,
            "regions": regions,
            "messages": messages,
            "locations": [location.name for location in trace.definitions.locations],
            "groups": [group.name for group in trace.definitions.location_groups],
            "files": sorted({region.source_file for region in trace.definitions.regions}),
        }))


main(sys.argv[1])
