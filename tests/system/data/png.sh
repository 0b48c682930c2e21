#!/usr/bin/env bash
# PNG files as people have them, in class folders: colour of 8 and 16 bits, grey of 1, 8 and 16 bits, palettes, transparency in all its forms.
# The images that train-prep makes of them are Pillow's convert("RGB"), which drops transparency, up to what JPEG loses; of
# 16-bit grey the high byte. EXIF's orientation is not applied.
# shellcheck source=tests/tap.sh
. "${top_srcdir:?run it by make check}/tests/tap.sh"
private_folder
/usr/bin/python3 -c 'import PIL, numpy' 2>/dev/null || skip_all "python3-pil or python3-numpy is not installed"
prep=$(realpath "$top_builddir/tests/bin/train-prep")
cd "$work" || exit 1
/usr/bin/python3 - <<'END'
import os, struct, zlib
import numpy as np
from PIL import Image
os.makedirs("in/train/a")
y, x = np.mgrid[0:48, 0:64]
ramp = np.stack([x * 4, y * 5, 255 - x * 2 - y], axis=2).astype(np.uint8)
alpha = ((x + y) * 2).astype(np.uint8)
rgb = Image.fromarray(ramp)
grey = rgb.convert("L")
rgb.save("in/train/a/rgb.png")
grey.save("in/train/a/grey.png")
grey.convert("1").save("in/train/a/bits.png")
Image.fromarray(np.dstack([ramp, alpha])).save("in/train/a/rgba.png")
Image.merge("LA", (grey, Image.fromarray(alpha))).save("in/train/a/grey_alpha.png")
rgb.quantize(16).save("in/train/a/palette.png")
rgb.quantize(16).save("in/train/a/palette_alpha.png", transparency=3)
rgb.save("in/train/a/key.png", transparency=(0, 0, 255))

def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

def wide(path, colour, values): # 16 bits, which Pillow does not write in colour
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in values.reshape(48, -1))
    open(path, "wb").write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 64, 48, 16, colour, 0, 0, 0)) +
        chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))

low = ((x * 7 + y * 13) % 256).astype(np.uint16)
wide("in/train/a/rgb16.png", 2, ramp.astype(np.uint16) * 256 + low[:, :, None])
wide("in/train/a/rgba16.png", 6, np.dstack([ramp, alpha]).astype(np.uint16) * 256 + low[:, :, None])
wide("in/train/a/grey16.png", 0, np.asarray(grey).astype(np.uint16) * 256 + low)
turned = Image.Exif()
turned[0x0112] = 6
rgb.save("in/train/a/turned.jpg", quality=100, subsampling=0, exif=turned)
END
ok "class folders of them are converted" "$prep" convert --from folder --in in --out out --shards 1
/usr/bin/python3 - >"$work/found" 2>&1 <<'END'
import glob, io, struct
import numpy as np
from PIL import Image

def fields(buffer): # of a protobuf message
    at = 0
    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = buffer[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
    while at < len(buffer):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
        else:
            length = varint()
            yield key >> 3, buffer[at:at + length]
            at += length

made = {}
for path in glob.glob("out/train/train-*"):
    data = open(path, "rb").read()
    at = 0
    while at < len(data):
        length, = struct.unpack_from("<Q", data, at)
        example = data[at + 12:at + 12 + length]
        at += 16 + length
        features = {}
        for _, all_features in fields(example):
            for _, entry in fields(all_features):
                pair = dict(fields(entry))
                features[pair[1].decode()] = dict(fields(dict(fields(pair[2])).get(1, b""))).get(1)
        made[features["image/filename"].decode()] = Image.open(io.BytesIO(features["image/encoded"]))
for path in sorted(glob.glob("in/train/a/*")):
    name = path.split("/")[-1]
    image = Image.open(path)
    if name == "grey16.png":
        wanted = Image.fromarray((np.asarray(image).astype(np.int64) >> 8).astype(np.uint8)).convert("RGB")
    else:
        wanted = image.convert("RGB")
    got = made[name]
    gap = np.abs(np.asarray(wanted).astype(int) - np.asarray(got.convert("RGB")).astype(int)) if got.size == wanted.size else np.array([255])
    print(name, got.mode, "the same" if gap.max() <= 5 and gap.mean() < 0.5 or (name in ("bits.png", "palette.png", "palette_alpha.png") and gap.mean() < 1.5) else f"differs by {gap.max()}, in the mean {gap.mean()}")
END
is "$(grep -v 'the same$' "$work/found")" "" "all have the pixels of Pillow"
is "$(wc -l <"$work/found") $(grep -c ' L ' "$work/found")" "12 4" "all twelve; grey ones stay grey"
done_testing
