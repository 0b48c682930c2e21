#!/usr/bin/python3
"""Small imitations of downloaded data sets, and a reader of TFRecord shards that shares nothing with ours.

    prep_data.py imagenet DIR   the two tars of ImageNet (a tar of class tars; a flat one), the development kit
    prep_data.py cifar DIR      cifar-10-binary.tar.gz and cifar-100-binary.tar.gz
    prep_data.py read SHARD...  a JSON object for each record; fails on a wrong checksum
"""
import base64
import io
import json
import random
import struct
import sys
import tarfile

from PIL import Image

CLASSES = 12
VALIDATION = 40


def picture(number, mode="RGB", size=(64, 48)):
    """A gradient that tells its number."""
    image = Image.new("RGB", size)
    image.putdata([(number * 7 % 256, x * 4 % 256, y * 5 % 256) for y in range(size[1]) for x in range(size[0])])
    return image.convert(mode)


def encoded(image, kind="JPEG"):
    out = io.BytesIO()
    image.save(out, kind, **({"quality": 90} if kind == "JPEG" else {}))
    return out.getvalue()


def add(tar, name, data):
    info = tarfile.TarInfo(name)
    info.size = len(data)
    tar.addfile(info, io.BytesIO(data))


# ---- ImageNet

def synset(c):
    return "n%08d" % (1440764 + 37 * c)


def train_image(c, i):
    number = 100 * c + i
    if (c, i) == (3, 2):
        return encoded(picture(number), "PNG")  # as n02105855_2933.JPEG is
    if (c, i) in ((5, 0), (7, 4)):
        return encoded(picture(number, "CMYK"))
    if (c, i) == (1, 1):
        return encoded(picture(number, "L"))
    return encoded(picture(number, size=(64 + c, 48 + i)))


def matlab_element(kind, data):
    if 0 < len(data) <= 4:  # the small form
        return struct.pack("<HH", kind, len(data)) + data.ljust(4, b"\0")
    return struct.pack("<II", kind, len(data)) + data + b"\0" * (-len(data) % 8)


def matlab_array(array_class, dims, *parts):
    body = matlab_element(6, struct.pack("<II", array_class, 0)) + matlab_element(5, struct.pack("<2i", *dims))
    return matlab_element(14, body + matlab_element(1, b"") + b"".join(parts))


def matlab_file(rows):
    """Level 5, a struct array "synsets"; https://www.mathworks.com/help/pdf_doc/matlab/matfile_format.pdf"""
    fields = ["ILSVRC2012_ID", "WNID", "words"]
    parts = [matlab_element(5, struct.pack("<i", 32)), matlab_element(1, b"".join(f.encode().ljust(32, b"\0") for f in fields))]
    for number, wnid, words in rows:
        parts.append(matlab_array(6, (1, 1), matlab_element(9, struct.pack("<d", number))))
        for text in (wnid, words):
            parts.append(matlab_array(4, (1, len(text)), matlab_element(4, text.encode("utf-16-le"))))
    body = matlab_element(6, struct.pack("<II", 2, 0)) + matlab_element(5, struct.pack("<2i", len(rows), 1))
    body += matlab_element(1, b"synsets") + b"".join(parts)
    return b"MATLAB 5.0 MAT-file".ljust(124) + struct.pack("<HH", 0x0100, 0x4D49) + matlab_element(14, body)


def imagenet(folder):
    shuffled = random.Random(1)
    classes = list(range(CLASSES))
    shuffled.shuffle(classes)
    with tarfile.open(folder + "/ILSVRC2012_img_train.tar", "w", format=tarfile.GNU_FORMAT) as train:
        for c in classes:
            inner = io.BytesIO()
            with tarfile.open(fileobj=inner, mode="w", format=tarfile.GNU_FORMAT) as tar:
                images = list(range(8 + c))
                shuffled.shuffle(images)
                for i in images:
                    add(tar, "%s_%d.JPEG" % (synset(c), 10000 + i), train_image(c, i))
            add(train, synset(c) + ".tar", inner.getvalue())
    labels = [(7 * i + 3) % CLASSES for i in range(VALIDATION)]
    with tarfile.open(folder + "/ILSVRC2012_img_val.tar", "w", format=tarfile.GNU_FORMAT) as val:
        order = list(range(VALIDATION))
        shuffled.shuffle(order)
        for i in order:
            add(val, "ILSVRC2012_val_%08d.JPEG" % (i + 1), encoded(picture(5000 + i)))
    # The numbers of the development kit are not in the order of the synsets.
    number = {c: n + 1 for n, c in enumerate(classes)}
    rows = [(number[c], synset(c), "thing %d, object %d" % (c, c)) for c in range(CLASSES)]
    rows += [(1001, "n00001740", "entity")]
    with tarfile.open(folder + "/ILSVRC2012_devkit_t12.tar.gz", "w:gz") as kit:
        add(kit, "ILSVRC2012_devkit_t12/data/meta.mat", matlab_file(rows))
        add(kit, "ILSVRC2012_devkit_t12/data/ILSVRC2012_validation_ground_truth.txt",
            "".join("%d\n" % number[c] for c in labels).encode())
    # The same truth in the two other forms, to be put beside the tars by a test.
    with open(folder + "/labels.txt", "w") as out:
        out.writelines(synset(c) + "\n" for c in labels)
    with open(folder + "/solution.csv", "w") as out:
        out.write("ImageId,PredictionString\n")
        for i in order:
            out.write("ILSVRC2012_val_%08d,%s 85 1 499 272 \n" % (i + 1, synset(labels[i])))


# ---- CIFAR

def cifar(folder):
    def records(first, count, label_bytes, classes):
        out = b""
        for i in range(first, first + count):
            planes = b"".join(bytes([(i * 3 + 40 * plane) % 256]) * 1024 for plane in range(3))
            out += bytes(([i % 3] if label_bytes == 2 else []) + [i % classes]) + planes
        return out

    with tarfile.open(folder + "/cifar-10-binary.tar.gz", "w:gz") as tar:
        base = "cifar-10-batches-bin/"
        add(tar, base + "batches.meta.txt", "".join("ten%d\n" % c for c in range(10)).encode() + b"\n")
        for batch in range(5):
            add(tar, base + "data_batch_%d.bin" % (batch + 1), records(20 * batch, 20, 1, 10))
        add(tar, base + "test_batch.bin", records(100, 17, 1, 10))
    with tarfile.open(folder + "/cifar-100-binary.tar.gz", "w:gz") as tar:
        base = "cifar-100-binary/"
        add(tar, base + "fine_label_names.txt", "".join("fine%d\n" % c for c in range(100)).encode())
        add(tar, base + "train.bin", records(0, 200, 2, 100))
        add(tar, base + "test.bin", records(200, 30, 2, 100))


# ---- reading

def crc_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


TABLE = crc_table()


def masked(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = TABLE[(crc ^ byte) & 255] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def example_class():
    """tensorflow.Example, with its map, from Google's protobuf library."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto(name="example.proto", package="tf", syntax="proto3")
    field = descriptor_pb2.FieldDescriptorProto

    def message(parent, name, *fields):
        m = parent.add(name=name)
        for number, (label, kind, type_name, field_name) in enumerate(fields, 1):
            m.field.add(name=field_name, number=number, label=label, type=kind, type_name=type_name)
        return m

    one, many = field.LABEL_OPTIONAL, field.LABEL_REPEATED
    message(file.message_type, "BytesList", (many, field.TYPE_BYTES, None, "value"))
    message(file.message_type, "FloatList", (many, field.TYPE_FLOAT, None, "value"))
    message(file.message_type, "Int64List", (many, field.TYPE_INT64, None, "value"))
    feature = message(file.message_type, "Feature", (one, field.TYPE_MESSAGE, ".tf.BytesList", "bytes_list"),
                      (one, field.TYPE_MESSAGE, ".tf.FloatList", "float_list"),
                      (one, field.TYPE_MESSAGE, ".tf.Int64List", "int64_list"))
    feature.oneof_decl.add(name="kind")
    for f in feature.field:
        f.oneof_index = 0
    features = message(file.message_type, "Features", (many, field.TYPE_MESSAGE, ".tf.Features.FeatureEntry", "feature"))
    entry = message(features.nested_type, "FeatureEntry", (one, field.TYPE_STRING, None, "key"),
                    (one, field.TYPE_MESSAGE, ".tf.Feature", "value"))
    entry.options.map_entry = True
    message(file.message_type, "Example", (one, field.TYPE_MESSAGE, ".tf.Features", "features"))
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.MessageFactory(pool).GetPrototype(pool.FindMessageTypeByName("tf.Example"))


def read(paths):
    example = example_class()
    for path in paths:
        data = open(path, "rb").read()
        at = 0
        while at < len(data):
            length, crc = struct.unpack_from("<QI", data, at)
            assert crc == masked(data[at:at + 8]), "length checksum in " + path
            payload = data[at + 12:at + 12 + length]
            assert len(payload) == length, "truncated: " + path
            assert struct.unpack_from("<I", data, at + 12 + length)[0] == masked(payload), "checksum in " + path
            at += 16 + length
            out = {"shard": path}
            for key, feature in example.FromString(payload).features.feature.items():
                value = getattr(feature, feature.WhichOneof("kind")).value
                assert len(value) == 1, key
                out[key] = value[0]
            image = Image.open(io.BytesIO(out["image/encoded"]))
            image.load()
            assert image.size == (out["image/width"], out["image/height"])
            middle = image.getpixel((image.width // 2, image.height // 2))
            out.update({"mode": image.mode, "middle": middle, "bytes": len(out["image/encoded"]),
                        "quality": sum(image.quantization[0])})
            out["image/encoded"] = base64.b64encode(out["image/encoded"][:4])
            print(json.dumps({k: v.decode() if isinstance(v, bytes) else v for k, v in out.items()}))


if __name__ == "__main__":
    {"imagenet": lambda a: imagenet(a[0]), "cifar": lambda a: cifar(a[0]), "read": read}[sys.argv[1]](sys.argv[2:])
