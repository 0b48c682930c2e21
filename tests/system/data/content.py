"""Fixtures of content.sh, by Pillow and by hand, and the pixels they have; see content.sh."""
import gzip
import io
import json
import os
import pickle
import shutil
import struct
import subprocess
import sys
import tarfile
import zipfile
import zlib

from PIL import Image

# Flat blocks of 8x8 pixels: a JPEG of quality 100 keeps their colours.
BLOCKS = [(255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255), (0, 0, 0), (128, 64, 200), (64, 64, 64), (200, 180, 20)]
WIDTH, HEIGHT = 32, 16
COLOURS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
PASSES = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]


def block(x, y):
    return y // 8 * 4 + x // 8


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def sample(colour, depth, x, y):
    """The channels of a pixel, as stored."""
    i = block(x, y)
    most = (1 << depth) - 1
    if colour == 3:
        return [i % (1 << depth)]
    rgb = BLOCKS[i] if colour in (2, 6) else [i * 255 // 7]
    # 16 bits: the low byte is another one, so that rounding shows
    values = [v * 257 ^ 0xa5 if depth == 16 else v * most // 255 for v in rgb]
    return values + ([(most * 3 // 5, 0)[i % 2]] if colour in (4, 6) else [])


def rows(colour, depth, box):
    first_x, first_y, step_x, step_y = box
    data = b""
    for y in range(first_y, HEIGHT, step_y):
        bits = "".join(f"{v:0{depth}b}" for x in range(first_x, WIDTH, step_x) for v in sample(colour, depth, x, y))
        bits += "0" * (-len(bits) % 8)
        if bits:
            data += b"\0" + int(bits, 2).to_bytes(len(bits) // 8, "big")
    return data


def png(colour, depth, interlaced, before=b"", transparency=None, behind=b""):
    data = b"".join(rows(colour, depth, p) for p in (PASSES if interlaced else [(0, 0, 1, 1)]))
    file = b"\x89PNG\r\n\x1a\n"
    file += chunk(b"IHDR", struct.pack(">IIBBBBB", WIDTH, HEIGHT, depth, colour, 0, 0, interlaced)) + before
    if colour == 3:
        file += chunk(b"PLTE", b"".join(bytes(BLOCKS[i % 8]) for i in range(1 << depth)))
    if transparency:
        file += chunk(b"tRNS", transparency)
    return file + chunk(b"IDAT", zlib.compress(data)) + behind + chunk(b"IEND", b"")


def all_pngs():
    """(name, file, the pixel of a block as it should be read)"""
    def expected(colour, depth):
        def at(x, y):
            s = sample(colour, depth, x, y)
            if colour == 3:
                return BLOCKS[s[0]]
            values = [v >> 8 if depth == 16 else v * 255 // ((1 << depth) - 1) for v in s]
            return tuple(values[:3]) if colour in (2, 6) else (values[0],) * 3
        return at

    profile = zlib.compress(b"not a profile " * 20)
    ancillary = {
        "gama": chunk(b"gAMA", struct.pack(">I", 100000)),
        "gama_dark": chunk(b"gAMA", struct.pack(">I", 22000)),
        "srgb": chunk(b"sRGB", b"\0"),
        "chrm": chunk(b"cHRM", struct.pack(">8I", 31270, 32900, 64000, 33000, 30000, 60000, 15000, 6000)),
        "iccp": chunk(b"iCCP", b"broken\0\0" + profile),
        "text": chunk(b"tEXt", b"Title\0a picture") + chunk(b"zTXt", b"Much\0\0" + zlib.compress(b"a" * 100000)),
    }
    for colour, depths in {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}.items():
        for depth in depths:
            for interlaced in (0, 1):
                yield f"c{colour}d{depth}i{interlaced}", png(colour, depth, interlaced), expected(colour, depth)
    for name, before in ancillary.items():
        for colour, depth in ((2, 8), (2, 16), (0, 8), (0, 16), (3, 8), (6, 8)):
            yield f"{name}_c{colour}d{depth}", png(colour, depth, 0, before), expected(colour, depth)
    for colour, depth, trns in ((0, 8, b"\0\xff"), (0, 16, b"\x12\x34"), (2, 8, bytes([0, 255, 0, 0, 0, 0])),
                                (3, 4, bytes([0, 128, 255])), (3, 8, b"\0" * 8)):
        yield f"trns_c{colour}d{depth}", png(colour, depth, 0, transparency=trns), expected(colour, depth)
    depth8 = {0: b"\4", 2: b"\4\4\4", 4: b"\4\4", 6: b"\4\4\4\4"}
    for colour, bits in depth8.items():
        yield f"sbit_c{colour}", png(colour, 8, 0, chunk(b"sBIT", bits)), expected(colour, 8)
    yield "bkgd_c6", png(6, 8, 0, chunk(b"bKGD", b"\0\xff\0\0\0\xff")), expected(6, 8)


def make_pngs(folder):
    os.makedirs(f"{folder}/train/all")
    for number, (name, file, at) in enumerate(all_pngs()):
        ending = ("png", "PNG", "jpg", "JPEG")[number % 4]
        with open(f"{folder}/train/all/{name}.{ending}", "wb") as out:
            out.write(file)


def check_pngs(folder, grey_lines):
    """The extracted JPEGs against the formula, and the formula against Pillow."""
    made = {line["name"].split(".")[0]: line for line in map(json.loads, open(grey_lines))}
    read = {name.split("-", 1)[1].split(".")[0]: f"{folder}/{name}" for name in os.listdir(folder)}
    count = 0
    for name, file, at in all_pngs():
        pillow = Image.open(io.BytesIO(file))
        grey16 = pillow.mode.startswith("I")  # Pillow clips these at 255
        pillow, ours = pillow.convert("RGB"), Image.open(read[name]).convert("RGB")
        assert ours.size == (WIDTH, HEIGHT), name
        colour = int(file[25])
        assert made[name]["channels"] == (1 if colour in (0, 4) else 3), name
        for y in range(3, HEIGHT, 8):
            for x in range(3, WIDTH, 8):
                want, got, pil = at(x, y), ours.getpixel((x, y)), pillow.getpixel((x, y))
                assert grey16 or pil == want, f"{name} at {x},{y}: Pillow has {pil}, not {want}"
                assert all(abs(a - b) <= 2 for a, b in zip(want, got)), f"{name} at {x},{y}: {got}, not {want}"
                count += 1
    print(count)
    assert count == 8 * len(read) and len(read) > 60


def picture(number, mode="RGB", size=48):
    image = Image.new(mode, (size, size))
    for y in range(size):
        for x in range(size):
            v = (x * (5 + number) + y * 3 + number * 40) % 256
            image.putpixel((x, y), (v, (v * 3) % 256, 255 - v) if mode == "RGB" else v)
    return image


def make_twins(folder):
    """The same pixels as JPEGs and as PNGs, of two classes; names say nothing of the content."""
    for i in range(24):
        jpeg = io.BytesIO()
        picture(i, "L" if i % 5 == 0 else "RGB").save(jpeg, "JPEG", quality=90)
        as_png = io.BytesIO()
        Image.open(jpeg).save(as_png, "PNG")
        for kind, content in (("jpeg", jpeg), ("png", as_png), ("mixed", as_png if i % 3 else jpeg)):
            os.makedirs(f"{folder}/{kind}/{'ab'[i % 2]}", exist_ok=True)
            ending = ("jpg", "png", "PNG", "jpeg")[i % 4]
            with open(f"{folder}/{kind}/{'ab'[i % 2]}/{i:02}.{ending}", "wb") as out:
                out.write(content.getvalue())


def segment(marker, data):
    return bytes([0xff, marker]) + struct.pack(">H", len(data) + 2) + data


def make_jpegs(folder):
    """whole/: pictures that are complete; cut/: none of them is."""
    def save(image, **options):
        out = io.BytesIO()
        image.save(out, "JPEG", **options)
        return out.getvalue()

    noise = Image.effect_noise((160, 120), 90).convert("RGB")
    thumbnail = save(noise.resize((40, 30)))
    plain, progressive = save(noise, quality=95), save(noise, quality=95, progressive=True)
    with_thumbnail = plain[:2] + segment(0xe1, b"Exif\0\0" + thumbnail) + plain[2:]
    icc = plain[:2] + segment(0xe2, b"ICC_PROFILE\0\1\1" + b"\xff\xd9" * 50) + plain[2:]
    comment = plain[:2] + segment(0xfe, b"\xff\xd9 the end \xff\xd9") + plain[2:]
    scan = progressive.rindex(b"\xff\xda")
    comment_between = progressive[:scan] + segment(0xfe, b"\xff\xd9" * 20) + progressive[scan:]
    filled = plain.replace(b"\xff\xdb", b"\xff\xff\xff\xdb", 1)[:-2] + b"\xff\xff\xff\xd9"
    whole = {
        "plain": plain, "progressive": progressive, "thumbnail": with_thumbnail, "icc": icc, "comment": comment,
        "filled": filled, "between": comment_between, "tail": plain + b"\0" * 6000, "tail_ff": plain + b"\xff" * 5000,
        "two": plain + with_thumbnail, "two_cut": plain + with_thumbnail[:-300], "grey": save(noise.convert("L")),
        "tiny": save(Image.new("RGB", (1, 1))),
        "mpo": plain[:2] + segment(0xe2, b"MPF\0" + b"\0" * 80) + plain[2:] + plain + b"\0" * 100,
        "markers": plain[:-2] + b"\xff\xd9",
    }
    whole["restart"] = with_restarts(save(noise, quality=95, subsampling=0))
    cut = {}
    for name in ("plain", "progressive", "icc", "comment", "between", "restart", "thumbnail", "grey"):
        file = whole[name]
        start = file.index(b"\xff\xda", len(thumbnail) if name == "thumbnail" else 0)
        for where, at in (("soon", start + 40), ("late", len(file) - 2), ("half", (start + len(file)) // 2)):
            cut[f"{name}_{where}"] = file[:at]
    cut["between_comment"] = comment_between[:scan + 44]
    cut["thumbnail_zeros"] = with_thumbnail[:len(with_thumbnail) // 2] + b"\0" * 100
    cut["header"] = with_thumbnail[:len(thumbnail) + 60]
    for kind, files in (("whole", whole), ("cut", cut)):
        os.makedirs(f"{folder}/{kind}/train/a")
        for name, file in files.items():
            with open(f"{folder}/{kind}/train/a/{name}.jpg", "wb") as out:
                out.write(file)


def with_restarts(file):
    """Pillow's own option for restart markers is newer than Debian 12. Without jpegtran: the picture as it is."""
    if not shutil.which("jpegtran"):
        return file
    return subprocess.run(["jpegtran", "-restart", "1"], input=file, check=True, capture_output=True).stdout


def make_kinds(folder):
    """NAME -> a file that is not what its place asks for."""
    record = b"\0" * 400
    torch = io.BytesIO()
    with zipfile.ZipFile(torch, "w") as z:
        z.writestr("archive/data.pkl", pickle.dumps({"fc.weight": 1}))
    plain_zip = io.BytesIO()
    with zipfile.ZipFile(plain_zip, "w") as z:
        z.writestr("readme", "text")
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w") as t:
        t.addfile(tarfile.TarInfo("a"))
    images = {}
    for kind in ("GIF", "BMP", "WEBP", "TIFF", "PNG", "JPEG"):
        out = io.BytesIO()
        picture(1).save(out, kind)
        images[kind.lower()] = out.getvalue()
    kinds = {
        "lfs": b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 1\n",
        "html": b"\n  <!DOCTYPE html>\n<html><body>404</body></html>\n", "gzip": gzip.compress(record),
        "zlib": zlib.compress(record), "zip": plain_zip.getvalue(), "torch": torch.getvalue(), "tar": tar.getvalue(),
        "pickle": pickle.dumps({"a": list(range(99))}, 2), "text": b"hello\nworld\n",
        "torch_old": b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.\x80\x02M\xe9\x03.",
        "hdf5": b"\x89HDF\r\n\x1a\n" + b"\0" * 100, "onnx": b"\x08\x07\x12\x07pytorch\x1a\x052.1.0:" + b"\1" * 99,
        **images,
    }
    for name, file in kinds.items():
        for place in (f"shards/{name}/train-00000-of-00001", f"init/{name}.safetensors", f"images/{name}/c/x.jpg",
                      f"idx/{name}/train-images-idx3-ubyte"):
            os.makedirs(os.path.dirname(f"{folder}/{place}"), exist_ok=True)
            with open(f"{folder}/{place}", "wb") as out:
                out.write(file)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
