"""Reads a trace by Perfetto's own classes, and says as JSON what is in it.

Slices must nest in each thread, and each message must lead from the slice of a call that was begun to an instant inside the slice of
another one: what the two ends say of themselves is printed for each.
"""

import collections
import json
import sys

from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as proto

BEGIN, END, INSTANT = 1, 2, 3


class Sequence:
    def __init__(self):
        self.names, self.annotations, self.texts, self.sites, self.track = {}, {}, {}, {}, None


def main(path):
    trace = proto.Trace()
    trace.ParseFromString(open(path, "rb").read())
    sequences = collections.defaultdict(Sequence)
    processes, threads, ranks = {}, {}, []
    events = collections.defaultdict(list)
    for packet in trace.packet:
        sequence = sequences[packet.trusted_packet_sequence_id]
        if packet.HasField("track_descriptor"):
            track = packet.track_descriptor
            if track.HasField("process"):
                processes[track.uuid] = track.name
                ranks.append((track.sibling_order_rank, track.name))
            elif track.HasField("thread"):
                threads[track.uuid] = track.parent_uuid
        if packet.sequence_flags & 1:
            sequence.__init__()
        if packet.HasField("trace_packet_defaults"):
            sequence.track = packet.trace_packet_defaults.track_event_defaults.track_uuid
        data = packet.interned_data
        sequence.names.update((one.iid, one.name) for one in data.event_names)
        sequence.annotations.update((one.iid, one.name) for one in data.debug_annotation_names)
        sequence.texts.update((one.iid, one.str.decode()) for one in data.debug_annotation_string_values)
        sequence.sites.update((one.iid, one) for one in data.source_locations)
        if packet.HasField("track_event"):
            events[sequence.track].append((packet.timestamp, sequence, packet.track_event))
    calls, sends, arrows, unfinished = collections.Counter(), {}, [], 0
    arrivals = []
    for track, of_track in events.items():
        # The sort is stable, as that of Perfetto's is.
        of_track.sort(key=lambda one: one[0])
        rank = processes[threads[track]]
        stack = []
        for timestamp, sequence, event in of_track:
            if event.type == BEGIN:
                told = {}
                for one in event.debug_annotations:
                    kind = one.WhichOneof("value")
                    text = one.WhichOneof("value") is None and one.string_value_iid
                    name = sequence.annotations[one.name_iid]
                    told[name] = sequence.texts[one.string_value_iid] if kind == "string_value_iid" or text else getattr(one, kind)
                name = sequence.names[event.name_iid]
                calls[name] += 1
                stack.append((name, timestamp, told))
                for flow in event.flow_ids:
                    sends[flow] = (rank, name, timestamp, told)
            elif event.type == END:
                assert stack, f"{rank}: a slice ends at {timestamp} that has not begun"
                assert stack[-1][1] <= timestamp
                stack.pop()
            elif event.type == INSTANT and event.terminating_flow_ids:
                assert stack, f"{rank}: a message arrives at {timestamp} outside of a call"
                name, begin, told = stack[-1]
                for flow in event.terminating_flow_ids:
                    arrivals.append((flow, rank, name, begin, timestamp))
        unfinished += len(stack)
    for flow, rank, name, begin, timestamp in arrivals:
        sender, sent_by, sent, told = sends[flow]
        assert sent <= timestamp, "an arrow leads backwards"
        arrows.append({"from": sender, "by": sent_by, "at": sent, "to": told.get("to"), "tag": told.get("tag"),
                       "number": told.get("number"), "rank": rank, "in": name, "begin": begin, "arrived": timestamp})
    print(json.dumps({
        "calls": calls,
        "unfinished": unfinished,
        "ranks": [name for _, name in sorted(ranks)],
        "arrows": arrows,
    }))


main(sys.argv[1])
