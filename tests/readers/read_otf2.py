"""Reads an archive by the official Python reader of OTF2, and says as JSON how many records of each kind are in it, what messages say, and which
have one end only."""

import collections
import json
import sys

import otf2


def rank_of(location, group):
    """Its rank in a communicator, whose members are numbers of locations of MPI: those are ranks of the archive."""
    return group.members.index(location) if location in group.members else -1


def main(path):
    records, regions, messages = collections.Counter(), collections.Counter(), []
    sent, received, requests = collections.Counter(), collections.Counter(), set()
    with otf2.reader.open(path) as trace:
        for location, event in trace.events:
            kind = type(event).__name__
            records[kind] += 1
            if kind == "Enter":
                regions[event.region.name] += 1
            elif kind in ("MpiSend", "MpiIsend"):
                group = event.communicator.group
                own = rank_of(location, group)
                sent[(event.communicator.name, own, event.receiver, event.msg_tag)] += 1
                messages.append([location.group.name, event.receiver, event.msg_tag, event.msg_length, len(group.members)])
            elif kind in ("MpiRecv", "MpiIrecv"):
                own = rank_of(location, event.communicator.group)
                received[(event.communicator.name, event.sender, own, event.msg_tag)] += 1
            if kind in ("MpiIsend", "MpiIrecvRequest"):
                requests.add((location.name, location.group.name, event.request_id))
            elif kind in ("MpiIsendComplete", "MpiIrecv"):
                requests.discard((location.name, location.group.name, event.request_id))
        one_end = sorted(set((sent - received).keys()) | set((received - sent).keys()))
        print(json.dumps({
            "one_end": one_end,
            "open_requests": len(requests),
            "records": records,
            "regions": regions,
            "messages": messages,
            "locations": [location.name for location in trace.definitions.locations],
            "groups": [group.name for group in trace.definitions.location_groups],
            "files": sorted({region.source_file for region in trace.definitions.regions}),
        }))


main(sys.argv[1])
