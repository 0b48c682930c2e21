"""The API against its own description. contract.py UNIX_SOCKET OPENAPI_JSON, prints TAP.

Sends every example of the document to the daemon and validates every answer (JSON Schema 2020-12), validates the document's own
examples, and shows that the schemas notice: a key too many, and a key too few, in every object of every answer."""
import copy, http.client, json, re, socket, sys, warnings
warnings.simplefilter("ignore")
import jsonschema

UNIX, DOCUMENT = sys.argv[1], json.load(open(sys.argv[2]))
METHODS = ("get", "post", "delete")
PROBLEM, EVENTS = "application/problem+json", "text/event-stream"
# Objects that are open on purpose: what may stand there is said elsewhere. Below these keys, and in these answers:
OPEN_KEYS = ("point", "base", "report")
OPEN = {"the job schema, this document": r"^/(v1/schema/job|openapi\.json)$", "Chrome's format": r"/trace$",
        "presets hold parts of job documents": r"^/v1/presets$",
        "tokens.json is the daemon's own": r"^/v1/backup/tokens$"}
NOTICED_MAX = 40
count = failed = 0


def report(good, name, *details):
    global count, failed
    count += 1
    failed += not good
    print("%s %d - %s" % ("ok" if good else "not ok", count, name.replace("#", "")))
    for line in ("\n".join(str(d) for d in details)[:3000].splitlines() if not good else ()):
        print("#   " + line)
    return good


def resolve(node):
    while "$ref" in node:
        part = DOCUMENT
        for word in node["$ref"][2:].split("/"):
            part = part[word]
        node = part
    return node


def validator(schema):
    """Of a schema of the document: its references lead into the document."""
    return jsonschema.Draft202012Validator({"$ref": "#/inner", "inner": schema, "components": DOCUMENT["components"]},
                                           format_checker=jsonschema.draft202012_format_checker)


def errors(schema, value):
    return ["%s: %s" % (e.json_path, e.message[:400]) for e in validator(schema).iter_errors(value)]


def operations(built=True):
    """The routes; those that this version does not have are no part of the contract yet."""
    for path, item in DOCUMENT["paths"].items():
        for method in METHODS:
            if method in item and not (built and "501" in item[method]["responses"]):
                yield method, path, item[method]


# ---------------------------------------------------------------- the document itself

def walk(node, at=""):
    yield at, node
    for key, value in (node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()):
        yield from walk(value, "%s/%s" % (at, key))


def check_document():
    report(DOCUMENT["openapi"].startswith("3.1.") and {"title", "version"} <= set(DOCUMENT["info"]), "it is an OpenAPI 3.1 document")
    broken = []
    for at, node in walk(DOCUMENT):
        if isinstance(node, dict) and isinstance(node.get("$ref"), str):
            try:
                resolve(node)
            except (KeyError, TypeError):
                broken.append(at)
    report(not broken, "every reference leads somewhere", broken)
    ids = [op["operationId"] for _, _, op in operations(built=False)]
    report(len(ids) == len(set(ids)), "operationIds are unique", ids)
    wrong = []
    for method, path, op in operations():
        names = [(p["in"], p["name"]) for p in map(resolve, op["parameters"])]
        if sorted(n for i, n in names if i == "path") != sorted(re.findall(r"{(\w+)}", path)) or len(names) != len(set(names)):
            wrong.append((method, path, names))
        if any(p["in"] == "path" and not p.get("required") or "schema" not in p for p in map(resolve, op["parameters"])):
            wrong.append((method, path, "a path's parameter is required and has a schema"))
        if not all(re.fullmatch(r"[1-5]\d\d|default", code) and resolve(r).get("description") for code, r in op["responses"].items()):
            wrong.append((method, path, "responses have a status and a description"))
    report(not wrong, "paths, parameters and responses are as OpenAPI wants them", *wrong)
    bad = []
    for name, schema in DOCUMENT["components"]["schemas"].items():
        try:
            jsonschema.Draft202012Validator.check_schema(schema)
        except jsonschema.SchemaError as e:
            bad.append((name, e.message))
    report(not bad, "the components are JSON Schemas", *bad)
    text = json.dumps(DOCUMENT["paths"]) + json.dumps(DOCUMENT["components"])
    unused = [n for n in DOCUMENT["components"]["schemas"] if '"#/components/schemas/%s"' % n not in text]
    report(not unused, "no schema is unused", unused)


def check_described():
    """Every route says what it takes and answers, with examples of both, and the examples fit."""
    for method, path, op in operations():
        name, problems = "%s %s" % (method.upper(), path), []
        good = [c for c in op["responses"] if c[0] == "2"]
        if not good or not any(m.get("examples") for c in good for m in op["responses"][c].get("content", {}).values()):
            problems.append("no example of a good answer")
        if method == "post" and "requestBody" in op and not op["requestBody"]["content"]["application/json"].get("examples"):
            problems.append("no example of a request")
        for where, schema, value in examples_of(op):
            problems += ["%s: %s" % (where, e) for e in errors(schema, value)]
        report(not problems, name + " is described, and its examples fit", *problems)


def examples_of(op):
    for p in map(resolve, op["parameters"]):
        for name, example in p.get("examples", {}).items():
            if not is_refused(op, name):
                yield "parameter %s of %s" % (p["name"], name), p["schema"], example["value"]
    for media in op.get("requestBody", {}).get("content", {}).values():
        for name, example in media.get("examples", {}).items():
            if not is_refused(op, name):
                yield "body of " + name, media["schema"], example["value"]
    for code, response in op["responses"].items():
        for kind, media in resolve(response).get("content", {}).items():
            for name, example in media.get("examples", {}).items():
                yield "answer of " + name, media["schema"], example["value"]


def answer_of(op, name):
    for code, response in op["responses"].items():
        for kind, media in resolve(response).get("content", {}).items():
            if name in media.get("examples", {}):
                return int(code), kind
    return None, None


def is_refused(op, name):
    return answer_of(op, name)[0] in (400, 422)


# ---------------------------------------------------------------- requests

class UnixConnection(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(30)
        self.sock.connect(UNIX)


def ask(method, path, headers={}, body=None):
    c = UnixConnection("localhost")
    c.request(method.upper(), path, body=body, headers=headers)
    r = c.getresponse()
    kind = r.getheader("Content-Type") or ""
    data = read_events(r) if kind == EVENTS else r.read()
    c.close()
    return r.status, kind, data, {k.lower() for k, _ in r.getheaders()}


def read_events(r):
    """Some events of a stream that would not end by itself."""
    lines = []
    while sum(line.startswith(b"data: ") for line in lines) < 3:
        lines.append(r.readline())
    return b"".join(lines)


def request_of(path, op, name):
    headers, query = {}, []
    for p in map(resolve, op["parameters"]):
        if name in p.get("examples", {}):
            value = str(p["examples"][name]["value"])
            if p["in"] == "path":
                path = path.replace("{%s}" % p["name"], value)
            elif p["in"] == "query":
                query.append("%s=%s" % (p["name"], value))
            else:
                headers[p["name"]] = value
    body = op.get("requestBody", {}).get("content", {}).get("application/json", {}).get("examples", {}).get(name)
    return path + ("?" + "&".join(query) if query else ""), headers, json.dumps(body["value"]) if body else None


def check_events(op, text):
    found, problems = 0, []
    for line in text.decode().splitlines():
        if line.startswith("data: {\""):
            found += 1
            problems += errors({"$ref": "#/components/schemas/Event"}, json.loads(line[6:]))
    return problems if found else ["no event came"]


def objects_in(value):
    return [node for at, node in walk(value) if isinstance(node, dict) and not set(at.split("/")) & set(OPEN_KEYS)]


def check_notices(path, schema, value):
    """A key too many in any object must not pass, nor the loss of a key that is always there."""
    if any(re.search(pattern, path) for pattern in OPEN.values()):
        return []
    passed, whole = [], validator(schema)
    for i, node in enumerate(objects_in(value)[:NOTICED_MAX]):
        changed = copy.deepcopy(value)
        objects_in(changed)[i]["added"] = {"by": {"the": "test"}}
        if whole.is_valid(changed):
            passed.append("a key too many passes in " + json.dumps(node)[:200])
    if isinstance(value, dict) and all(whole.is_valid({k: v for k, v in value.items() if k != key}) for key in value):
        passed.append("no key is required")
    return passed


def check_answer(path, op, status, kind, data, headers):
    response = op["responses"].get(str(status))
    if not response:
        return ["the status %d is not declared" % status]
    content = resolve(response).get("content", {})
    if kind not in content:
        return ["the type %s is not among %s" % (kind, list(content))]
    missing = [h for h in resolve(response).get("headers", {}) if h.lower() not in headers and h not in ("X-Metrics-Next", "Location", "Preference-Applied") and not (h == "ETag" and kind == EVENTS)]
    problems = ["the header %s is missing" % h for h in missing]
    if kind == EVENTS:
        return problems + check_events(op, data)
    if "json" not in kind:
        return problems + ([] if data else ["nothing came"])
    value = json.loads(data)
    problems += errors(content[kind]["schema"], value)
    if kind == PROBLEM and value.get("status") != status:
        problems.append("the problem says status %s" % value.get("status"))
    if not problems:
        problems = check_notices(path, content[kind]["schema"], value)
    return problems


def send_examples():
    """GETs first, removals last: what is there is what tests/api/http/contract.sh made."""
    for method, path, op in sorted(operations(), key=lambda o: METHODS.index(o[0])):
        names = [n for r in op["responses"].values() for m in resolve(r).get("content", {}).values() for n in m.get("examples", {})]
        # What is refused first: it must not matter that nothing was done yet.
        for name in sorted(set(names), key=lambda n: (not is_refused(op, n), names.index(n))):
            wanted, kind = answer_of(op, name)
            target, headers, body = request_of(path, op, name)
            if kind == EVENTS:
                headers["Accept"] = EVENTS
            got = ask(method, target, headers, body)
            problems = check_answer(path, op, *got)
            if got[0] != wanted:
                problems.insert(0, "the status is %d, not %s: %s" % (got[0], wanted, got[2][:500]))
            elif got[1] != kind:
                problems.insert(0, "the type is %s, not %s" % (got[1], kind))
            report(not problems, "%s %s, example %s: %d" % (method.upper(), target, name, got[0]), *problems)


def check_eval_plan():
    """An evaluation has no training: its plan has nulls where a training's has numbers."""
    path, op = "/v1/plan", DOCUMENT["paths"]["/v1/plan"]["post"]
    document = {"mode": "eval", "data": {"eval": "synthetic", "eval_images": 64}, "model": {"arch": "resnet18", "image_size": 32, "classes": 10}}
    got = ask("post", path, body=json.dumps(document))
    problems = check_answer(path, op, *got)
    report(got[0] == 200 and not problems, "the plan of an evaluation is as described: %d" % got[0], *problems or [got[2]])


def check_phases():
    """Batches that change with the size of the images: the plan lists them."""
    path, op = "/v1/plan", DOCUMENT["paths"]["/v1/plan"]["post"]
    document = {"data": {"train": "synthetic", "train_images": 1000}, "model": {"arch": "resnet18", "image_size": [[0, 32], [1, 64]], "classes": 10},
                "batch_per_worker": 8, "batch_schedule": "fill", "epochs": 2}
    got = ask("post", path, body=json.dumps(document))
    problems = check_answer(path, op, *got)
    phases = json.loads(got[2]).get("phases", [])
    report(got[0] == 200 and not problems and len(phases) == 2, "the plan of phases is as described: %d" % got[0], *problems or [got[2]])


def check_required():
    """What a document cannot do without is the same to the schema and to the daemon."""
    small = {"arch": "resnet18", "image_size": 32, "classes": 10}
    documents = [
        (True, {"data": {"train": "synthetic"}}),
        (True, {"mode": "train", "data": {"train": "/no/folder"}}),
        (False, {}),
        (False, {"data": {}}),
        (False, {"data": {"train": None}}),
        (False, {"mode": "train", "data": {"eval": "synthetic"}}),
        (True, {"mode": "eval", "data": {"eval": "synthetic"}}),
        (True, {"mode": "eval", "data": {"eval": "synthetic"}, "model": small}),
        (True, {"mode": "eval", "data": {"eval": "synthetic"}, "model": {"init": None}}),
        (True, {"mode": "eval", "data": {"eval": "/no/folder"}, "model": {"init": "/no/weights"}}),
        (False, {"mode": "eval", "data": {"eval": "/no/folder"}}),
        (False, {"mode": "eval", "data": {"eval": "/no/folder"}, "model": small}),
        (False, {"mode": "eval", "data": {"eval": "/no/folder"}, "model": {"init": None}}),
        (False, {"mode": "eval"}),
        (False, {"mode": "eval", "data": {"train": "synthetic"}}),
        (False, {"mode": "eval", "data": {"eval": None}}),
    ]
    for complete, document in documents:
        found = errors({"$ref": "#/components/schemas/JobDocument"}, document)
        status, _, data, _ = ask("post", "/v1/plan", body=json.dumps(document))
        demanded = [e for e in json.loads(data).get("errors", []) if re.search("is (required|missing)", e["message"])]
        report((not found, not demanded) == (complete, complete),
               "%s is %s to the schema and the daemon" % (json.dumps(document), "complete" if complete else "incomplete"),
               "schema:", *found, "daemon: %d" % status, *demanded)


print("# %d routes" % len(list(operations())))
check_document()
check_described()
check_eval_plan()
check_phases()
check_required()
send_examples()
print("# failed: %d" % failed)
print("1..%d" % count)
sys.exit(failed > 0)
