"""photos.py FOLDER COUNT: JPEGs of 500x375 pixels and 109 KB on average, as ImageNet has them, in ten class folders.

Crops of the photographs in Debian's mate-backgrounds at several zooms. They are smoother than snapshots: noise,
as of a small camera, and a high quality make the files as large. Exits with 3 where the package is not installed."""
import glob
import pathlib
import sys

import numpy as np
from PIL import Image

folder, count = pathlib.Path(sys.argv[1]), int(sys.argv[2])
names = sorted(glob.glob("/usr/share/backgrounds/mate/nature/*.jpg"))
if not names:
    print("photos.py: no photographs: apt-get install mate-backgrounds", file=sys.stderr)
    sys.exit(3)
random = np.random.default_rng(1)
made = 0
while made < count:
    for name in names:
        photo = Image.open(name).convert("RGB")
        for _ in range(min(-(-count // len(names)), count - made)):
            zoom = random.uniform(1, min(photo.width / 500, photo.height / 375))
            width, height = int(500 * zoom), int(375 * zoom)
            x, y = random.integers(0, photo.width - width + 1), random.integers(0, photo.height - height + 1)
            crop = photo.crop((x, y, x + width, y + height)).resize((500, 375), Image.LANCZOS)
            noisy = np.asarray(crop) + random.normal(0, 8, (375, 500, 3))
            crop = Image.fromarray(np.clip(noisy, 0, 255).astype(np.uint8))
            path = folder / f"class{made % 10}" / f"{made:06}.jpg"
            path.parent.mkdir(parents=True, exist_ok=True)
            crop.save(path, quality=96)
            made += 1
