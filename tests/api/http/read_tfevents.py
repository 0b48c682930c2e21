"""Reads a TensorBoard file with nothing of traind's: read_tfevents.py FILE. Prints one JSON object."""
import json
import struct
import sys

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, struct_pb2

F = descriptor_pb2.FieldDescriptorProto
file = descriptor_pb2.FileDescriptorProto(name="events.proto", package="r", syntax="proto3")
SCHEMA = {
    "Plugin": [("plugin_name", 1, F.TYPE_STRING, 0), ("content", 2, F.TYPE_BYTES, 0)],
    "Metadata": [("plugin_data", 1, "Plugin", 0)],
    "Shape": [("unknown_rank", 3, F.TYPE_BOOL, 0)],
    "Tensor": [("dtype", 1, F.TYPE_INT32, 0), ("tensor_shape", 2, "Shape", 0), ("float_val", 5, F.TYPE_FLOAT, 1), ("string_val", 8, F.TYPE_BYTES, 1)],
    "Value": [("tag", 1, F.TYPE_STRING, 0), ("simple_value", 2, F.TYPE_FLOAT, 0), ("tensor", 8, "Tensor", 0), ("metadata", 9, "Metadata", 0)],
    "Summary": [("value", 1, "Value", 1)],
    "Event": [("wall_time", 1, F.TYPE_DOUBLE, 0), ("step", 2, F.TYPE_INT64, 0), ("file_version", 3, F.TYPE_STRING, 0), ("summary", 5, "Summary", 0)],
    "Entry": [("key", 1, F.TYPE_STRING, 0), ("value", 2, F.TYPE_BYTES, 0)],
    "Session": [("hparams", 1, "Entry", 1), ("group_name", 4, F.TYPE_STRING, 0), ("start_time_secs", 5, F.TYPE_DOUBLE, 0)],
    "Hparams": [("version", 1, F.TYPE_INT32, 0), ("session_start_info", 3, "Session", 0)],
}
for name, fields in SCHEMA.items():
    message = file.message_type.add(name=name)
    for field, number, kind, repeated in fields:
        f = message.field.add(name=field, number=number, label=F.LABEL_REPEATED if repeated else F.LABEL_OPTIONAL)
        if isinstance(kind, str):
            f.type, f.type_name = F.TYPE_MESSAGE, ".r." + kind
        else:
            f.type = kind
pool = descriptor_pool.DescriptorPool()
pool.Add(file)
make = message_factory.MessageFactory(pool)
Event, Hparams = (make.GetPrototype(pool.FindMessageTypeByName("r." + n)) for n in ("Event", "Hparams"))

table = []
for i in range(256):
    for _ in range(8):
        i = i >> 1 ^ (0x82F63B78 if i & 1 else 0)
    table.append(i)


def masked(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = table[(crc ^ byte) & 255] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


data, at, events = open(sys.argv[1], "rb").read(), 0, []
while at < len(data):
    (length,), (crc,) = struct.unpack_from("<Q", data, at), struct.unpack_from("<I", data, at + 8)
    assert masked(data[at:at + 8]) == crc, f"CRC of the length at {at}"
    payload = data[at + 12:at + 12 + length]
    assert masked(payload) == struct.unpack_from("<I", data, at + 12 + length)[0], f"CRC of the data at {at}"
    events.append(Event.FromString(payload))
    at += 16 + length
assert events[0].file_version == "brain.Event:2"
series, hparams, texts = {}, {}, {}
for event in events[1:]:
    assert event.wall_time > 1.5e9
    for value in event.summary.value:
        if value.metadata.plugin_data.plugin_name == "hparams":
            assert value.tag == "_hparams_/session_start_info" and value.tensor.dtype == 1
            for entry in Hparams.FromString(value.metadata.plugin_data.content).session_start_info.hparams:
                v = struct_pb2.Value.FromString(entry.value)
                hparams[entry.key] = getattr(v, v.WhichOneof("kind"))
        elif value.metadata.plugin_data.plugin_name == "text":
            assert value.tensor.dtype == 7 and len(value.tensor.string_val) == 1
            texts[value.tag] = value.tensor.string_val[0].decode()
        else:
            series.setdefault(value.tag, []).append([event.step, round(value.simple_value, 6)])
print(json.dumps({"series": series, "hparams": hparams, "texts": texts}))
