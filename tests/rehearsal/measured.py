#!/usr/bin/python3
"""measured.py FILE COMMAND...: runs the command, writes what it took to FILE as one JSON object, and ends with its status.

peak_bytes is the most memory that one process of the command had at once.
"""
import json
import os
import resource
import subprocess
import sys
import time

begun = time.monotonic()
status = subprocess.call(sys.argv[2:])
used = resource.getrusage(resource.RUSAGE_CHILDREN)
with open(sys.argv[1], "w", encoding="utf-8") as out:
    json.dump({"seconds": round(time.monotonic() - begun, 3), "processor_seconds": round(used.ru_utime + used.ru_stime, 3),
               "peak_bytes": 1024 * used.ru_maxrss, "status": status, "command": os.path.basename(sys.argv[2])}, out)
sys.exit(status if status >= 0 else 128 - status)
