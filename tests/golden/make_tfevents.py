#!/usr/bin/env python3
"""Writes scalars.tfevents with TensorBoard's own classes; needs tensorboard. See PROVENANCE.md.

    python3 tests/golden/make_tfevents.py
"""

import pathlib

from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.record_writer import RecordWriter

TIME = 1764447000.25
EVENTS = [
    Event(wall_time=TIME, file_version="brain.Event:2"),
    Event(wall_time=TIME, step=1, session_log=SessionLog(status=SessionLog.START)),
    Event(wall_time=TIME, step=1, summary=Summary(value=[
        Summary.Value(tag="train/loss", simple_value=3.25), Summary.Value(tag="train/rate", simple_value=1e-7)])),
    Event(wall_time=TIME + 1, step=5_000_000_000, summary=Summary(value=[
        Summary.Value(tag="x" * 200, simple_value=float("nan")), Summary.Value(tag="ä", simple_value=0.0)])),
]

with open(pathlib.Path(__file__).resolve().parent / "scalars.tfevents", "wb") as f:
    writer = RecordWriter(f)
    for event in EVENTS:
        writer.write(event.SerializeToString())
    writer.flush()
