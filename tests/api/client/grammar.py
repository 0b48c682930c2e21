#!/usr/bin/env python3
"""Hostile strings for every string key of a job document, as the daemon's own schema lists them, and for the names of its objects.

grammar.py URL BASE CANARY FREE ACCEPTED

BASE is a JSON file: a document that is right. Each string of HOSTILE goes into each key, alone and around a harmless value,
to /v1/plan, /v1/jobs and /v1/sweeps (in the base and as a parameter). A document that the schema or the daemon refuses must be
refused by every route; one that only FREE keys (with commas between them) may hold must be accepted for those alone. Writes the
strings that were accepted as JSON lines [key, string] into ACCEPTED and prints a line for each thing that is not as it should be.
"""
import http.client
import json
import re
import socket
import sys
import urllib.parse

url, base_file, canary, free, accepted_file = sys.argv[1:]
base = json.load(open(base_file))
free = free.split(",")
connection = http.client.HTTPConnection(urllib.parse.urlsplit(url).netloc or "localhost")
if url.startswith("unix:"):
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.connect(url[5:])

run = "touch " + canary
HOSTILE = [
    *(f"{c}{run}{c}" for c in ";&|<>\"'`$(){}[]*?!#~^%=\\ "),
    f"$({run})", f"`{run}`", f"\"; {run} ; \"", f"'; {run} ; '", f"\\\"; {run}; \\\"", f"${{IFS}}$({run})", f"eth0;{run}", f"a || {run}",
    f"a && {run}", f"<({run})", f"x\n{run}\n", f"x\r{run}\r", f"x\t{run}", f"\"\n#SBATCH --wrap='{run}'\n", "x\u0000y", "x\u0001y", "x\u001b[31my",
    "x\u007fy", "x\u0085y", "x\u009by", "x\u2028y", "x\u202ey", "x\u2066y", "x\ufeffy", "-oProxyCommand=" + run, "--wrap=" + run,
    "~/x", "~root", "../../x", "/etc/passwd", "x y", "é", "x\u00a0y", "10.0.0.0/24\" ; id ; \"", "a/../../etc", "%n%s", "$HOME", "\\", "",
]
# What no string that becomes a word of a command may hold.
DANGEROUS = re.compile(r"[^A-Za-z0-9._,:^+=/@%&|*()\[\] -]|^[~]")


def send(path, document):
    body = json.dumps(document)
    connection.request("POST", path, body, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


def alone(text):
    return text


def in_list(text):
    return [text]


def in_map(text):
    return {"OMP_X": text}


def as_name(text):
    return {text: "x"}


def strings(schema, path=()):
    """(path, schema of the string, the value that it makes) of each key that takes free strings."""
    for key, value in schema.get("properties", {}).items():
        types = value.get("type")
        types = types if isinstance(types, list) else [types]
        for form in value.get("anyOf", []):  # of which none is a string
            assert form["type"] != "string", key
            yield from strings(form, path + (key,))
        if "anyOf" in value:
            continue
        if "object" in types and "properties" not in value:
            yield path + (key,), value["additionalProperties"], in_map
            yield path + (key,), value["propertyNames"], as_name
        elif "object" in types:
            yield from strings(value, path + (key,))
        elif "array" in types and value["items"]["type"] == "string":
            yield path + (key,), value["items"], in_list
        elif "string" in types and "enum" not in value:
            yield path + (key,), value, alone


def with_value(path, value):
    document = json.loads(json.dumps(base))
    at = document
    for key in path[:-1]:
        at = at.setdefault(key, {})
    at[path[-1]] = value
    return document


connection.request("GET", "/v1/schema/job")
schema = json.loads(connection.getresponse().read())
keys = list(strings(schema))
accepted = open(accepted_file, "w")
sent = 0
for path, rule, make in keys:
    key = ".".join(path)
    for text in HOSTILE + [("OMP_" if make is as_name else "a") + h for h in HOSTILE]:
        value = make(text)
        values = [value]
        if key == "cluster.mpi_args":
            values += [["--mca", "btl_tcp_if_include", text], ["--mca", text, "1"], ["--prefix", text], [text, "--mca", "btl", "self"]]
        for value in values:
            document = with_value(path, value)
            status, answer = send("/v1/plan", document)
            sent += 1
            if status not in (200, 400, 422):
                print(f"{key} {value!r}: status {status}: {answer[:200]}")
            if "pattern" in rule and not re.search(rule["pattern"], text) and status == 200:
                print(f"{key} {value!r}: passes, but not the schema's pattern")
            if status == 200 and key not in free and DANGEROUS.search(text):
                print(f"{key} {value!r}: passes")
            if status == 200:
                accepted.write(json.dumps([key, text]) + "\n")
                continue
            for route, doc in (
                ("/v1/jobs", document),
                ("/v1/sweeps", {"metric": "loss", "base": document, "parameters": {"/seed": [1]}}),
                ("/v1/sweeps", {"metric": "loss", "base": base, "parameters": {"/" + "/".join(path): [value]}}),
            ):
                again, answer = send(route, doc)
                if again != status:
                    print(f"{key} {value!r}: {status} by /v1/plan, {again} by {route}: {answer[:200]}")
if len(keys) < 12:
    print(f"only {len(keys)} string keys were found in the schema")
print(f"# {len(keys)} keys, {sent} documents", file=sys.stderr)
