#!/usr/bin/python3
"""Runs the API cases of a file below tests/api/cases/ against one daemon, and prints TAP.

    run_cases.py FILE [WORDS]     WORDS: report only the cases with these words in their name (or CASE=WORDS). Those before them run
                                  as well, as they may have made what a case needs.

The format, by example (doc/how-to-add-a-test.md explains it):

    setting slots = 3                              of traind.conf; user NAME ROLE: another token; $name = VALUE: a variable
    for $limit in 0 | -1 | abc                     the cases up to "end" run for each value; more values may follow, one an indented line;
    limits: GET /v1/jobs?limit=$limit -> 400 usage ~ from 1 to 1000            "in [METHOD] routes [with body]": of openapi.json
    end
    a job: POST /v1/jobs as submit
        Idempotency-Key: k1                        headers, then a body: text, @FILE, bytes ESCAPES, or JSON + JSON (a merge patch)
        $fixture + {"name": "steps=4"}
        -> 201; /state = "queued"                  a status (an ERE), and checks, here or in lines of their own; or "eventually STATUS": repeat until all of it holds
        $id = /id                                  captured for later cases; also: header NAME
        /tags/0 = "a"                              POINTER [sorted|length] = != < > JSON, ~ !~ ERE, has lacks JSON, is TYPE|missing;
        header Location ~ ^/v1/jobs/               in a pointer * is every element and [KEY=VALUE] those with it, A,B members as a list
        body ~ words
        sql select count(*) from job => 1          sql and run (by bash): also alone, between cases, and before the arrow
"""
import http.client, io, json, os, re, select, shutil, signal, socket, sqlite3, subprocess, sys, tempfile, time, urllib.parse

SOURCE = os.environ.get("top_srcdir") or os.path.abspath(os.path.dirname(__file__) + "/../..")
BUILD = os.environ.get("top_builddir") or os.getcwd()
OPENAPI = json.load(open(SOURCE + "/schema/openapi.json"))
ROUTES = [(m.upper(), p, op) for p, item in OPENAPI["paths"].items() for m, op in item.items()]
PATTERNS = [(m, p, re.compile(re.sub(r"{\w+}", "[^/?]+", p) + r"(\?|$)")) for m, p, _ in sorted(ROUTES, key=lambda r: r[1].count("{"))]
REACH = {r["name"]: {r["name"], *r["includes"]} for r in OPENAPI["x-roles"]}
FIXTURE = """{"cluster": {"workers_per_node": 2, "threads_per_worker": 1}, "data": {"train": "synthetic", "train_images": 64},
 "batch_per_worker": 4, "steps": 4, "restart": {"max": 0}, "model": {"image_size": 32, "classes": 10}}"""
HEAD = re.compile(r"(?P<name>.+?): (?P<method>(?!run |sql )[A-Za-z]+|\$method) (?P<path>\".*\"|[/$]\S*)(?: as (?P<who>[\w$]+))?(?: (?P<rest>.*))?$")
ACTION = re.compile(r"(?:(?P<name>[^\"$]+?): )?(?P<eventually>eventually )?(?P<verb>sql|run) (?P<text>.*?)(?: (?P<op>=>|=~) ?(?P<wanted>.*))?$")
TYPES = {"number": (int, float), "string": str, "array": list, "object": dict, "boolean": bool, "null": type(None)}


class Wrong(Exception):
    """What a check found: the words are shown below "not ok"."""


# ---------------------------------------------------------------- the file

class Case:
    def __init__(self, line, text, bound):
        self.line, self.bound, self.lines, self.wanted = line, bound, [], None
        m = HEAD.match(text)
        self.name, self.method, self.path, self.who = m["name"], m["method"], m["path"], m["who"]
        if m["rest"] or text.endswith(" -> "):
            self.add(m["rest"])

    def add(self, text):
        before, arrow, after = (" " + text).partition(" -> ") if self.wanted is None else ("", "", text)
        if before.strip():
            self.lines.append((False, before.strip()))
        checks = re.split(r"; (?=/|header |body |\$\w+ = )", after.strip())
        if arrow:
            self.wanted = checks.pop(0)
        self.lines += [(True, check) for check in checks if check]


def values_of(words):
    """Of "[METHOD] routes [/PREFIX] [with body|id]" the routes of openapi.json; an id is 1 for those with a body, or none that exists."""
    m = re.fullmatch(r"(?:([A-Z]+) )?routes(?: (/\S*))?(?: with (body|id))?", words[0]) if words else None
    if not m:
        return words
    return [method + " " + re.sub(r"{id}", "1" if m[3] == "body" else "999999", re.sub(r"{(?!id)\w+}", "7", path)) for method, path, op in ROUTES
            if m[1] in (None, method) and path.startswith(m[2] or "/") and (m[3] != "id" or "{id}" in path) and (m[3] == "body") <= ("requestBody" in op)
            and (m[3] == "id") <= ("requestBody" not in op)]


def read_cases(path):
    """The lines of the file in order, loops unrolled: Case objects, and (line, text, variables) for what is between them."""
    lines = [(n, text.rstrip()) for n, text in enumerate(open(path, encoding="utf-8"), 1) if text.strip() and not text.startswith("#")]

    def block(at, bound, out):
        while at < len(lines):
            n, text = lines[at]
            loop = re.match(r"\s*for ((?:\$\w+ )+)in ?(.*)", text)
            if text == "end":
                return at + 1
            at += 1
            if loop and not text[0].isspace():
                words = [w.strip() for w in re.split(r" \|(?: |$)", loop[2])] if loop[2] else []
                while not loop[2] and lines[at][1][0].isspace():
                    words.append(lines[at][1].strip())
                    at += 1
                names, end = loop[1].replace("$", "").split(), at
                for word in values_of(words):
                    parts = (word.split(None, len(names) - 1) if len(names) > 1 else [word]) + [""] * len(names)
                    end = block(at, {**bound, **dict(zip(names, parts))}, out)
                at = end
            elif text[0].isspace():
                out[-1].add(text.strip())
            elif HEAD.match(text):
                out.append(Case(n, text, bound))
            else:
                out.append((n, text, bound))
        return at

    items = []
    block(0, {}, items)
    for case in items:
        if isinstance(case, Case) and case.wanted is None:
            sys.exit("%s:%d: this case does not say what it expects" % (path, case.line))
    return items


def substitute(text, variables):
    def value(m):
        if m[1] is not None:
            return substitute(m[1], variables) * int(substitute(m[2], variables))
        if m[0] == "$$":
            return "$"
        if (m[3] or m[4]) not in variables:
            raise Wrong("there is no variable $" + (m[3] or m[4]))
        return str(variables[m[3] or m[4]])
    return re.sub(r'\$\{"(.*?)"\*(\$?\w+)\}|\$\$|\$([a-z_]\w*)|\$\{(\w+)\}', value, text)


def route_of(method, path):
    """The path in openapi.json of a request, or None."""
    return next((p for m, p, pattern in PATTERNS if m == method and pattern.match(path)), None)


def pairs_without_a_case():
    """Of route and status in openapi.json, those that no case of any file and no example of openapi.json tries, nor a line
    "untested METHOD PATH STATUS: WHERE" excepts."""
    tried, folder = set(), SOURCE + "/tests/api/cases/"
    for file in filter(lambda f: f.endswith(".cases"), os.listdir(folder)):
        for item in read_cases(folder + file):
            if isinstance(item, Case):
                static = lambda text: re.sub(r"\$([a-z_]\w*)", lambda m: item.bound.get(m[1], m[0]), text)
                method, path, wanted = static(item.method).replace("HEAD", "GET"), static(item.path), static(item.wanted)
                route = route_of(method, path) or "/"
                role = re.match("allowed to (\\w+)", wanted)
                tried.update((method, route, code) for code in (("401",) if static(item.who or "") == "nobody" else ("403",) if role else
                                                                re.findall("[1-5][0-9][0-9]", wanted.replace("eventually ", "").split(" ")[0])))
            elif item[1].startswith("untested "):
                tried.add(tuple(item[1].split(":")[0].split()[1:]))
    tried.update((m, p, code) for m, p, op in ROUTES for code, r in op["responses"].items()
                 if any(media.get("examples") for media in r.get("content", {}).values()))
    return ["%s %s: no case has the status %s" % (m, p, code) for m, p, op in ROUTES for code in op["responses"]
            if code != "default" and not tried & {(m, p, code), ("*", "*", code)}]


# ---------------------------------------------------------------- the daemon

class Received(io.BytesIO):
    """What came until the daemon closed, as http.client takes a socket."""
    def makefile(self, *_):
        return self

    def close(self):
        pass


class Daemon:
    def __init__(self):
        self.work = tempfile.mkdtemp(prefix="traind-api.")
        self.settings = {"require_token": "no", "worker": BUILD + "/tests/api/fixture_worker", "slots": "2", "cancel_grace_seconds": "60",
                         "restart_delay_seconds": "0"}
        self.state, self.process, self.tokens, self.users = self.work + "/state", None, {}, {r: r for r in REACH if r != "anyone"}

    def write_settings(self):
        with open(self.work + "/traind.conf.new", "w") as f:
            f.writelines("%s = %s\n" % pair for pair in self.settings.items())
        os.rename(self.work + "/traind.conf.new", self.work + "/traind.conf")

    def reload(self):
        reloads = lambda: open(self.work + "/daemon.log", errors="replace").read().count("settings reloaded")
        before = reloads()
        self.write_settings()
        self.process.send_signal(signal.SIGHUP)
        while reloads() == before:
            time.sleep(0.02)

    def start(self):
        self.write_settings()
        if os.path.exists(self.state + "/listen"):
            os.remove(self.state + "/listen")
        environment = {k: v for k, v in os.environ.items() if k != "TRAIND_STATE"}
        environment.setdefault("TRAIND_PRESETS", SOURCE + "/etc/presets")
        self.log = open(self.work + "/daemon.log", "a")
        self.process = subprocess.Popen([os.environ.get("TRAIND") or BUILD + "/traind", "--config", self.work + "/traind.conf", "--state", self.state,
                                         "--listen", "127.0.0.1:0"], stdout=self.log, stderr=self.log, stdin=subprocess.DEVNULL, env=environment)
        while not os.path.exists(self.state + "/listen") or not open(self.state + "/listen").read().endswith("\n"):
            if self.process.poll() is not None:
                print("Bail out! traind did not start\n" + re.sub("^", "# ", open(self.work + "/daemon.log").read(), flags=re.M))
                sys.exit(1)
            time.sleep(0.02)
        self.url = open(self.state + "/listen").read().strip()

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        code, self.process = self.process.wait(), None
        return code

    def end(self):
        """Ends what jobs are left, with the memory that their ranks share."""
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                environment = open("/proc/%s/environ" % pid, "rb").read().decode(errors="replace").split("\0")
            except OSError:
                continue
            if any(v.startswith("TRAIND_ATTEMPT_DIR=%s/" % self.state) for v in environment):
                try:
                    os.kill(int(pid), signal.SIGKILL)
                except ProcessLookupError:
                    pass
                for v in environment:
                    if v.startswith("OMPI_MCA_btl_vader_backing_directory=/dev/shm/traind-"):
                        shutil.rmtree(v.split("=", 1)[1], ignore_errors=True)
        if self.process:
            self.stop(signal.SIGKILL)
        shutil.rmtree(self.work, ignore_errors=True)

    def connect(self, over_socket):
        s = socket.socket(socket.AF_UNIX if over_socket else socket.AF_INET)
        s.settimeout(60)
        s.connect(self.state + "/traind.sock" if over_socket else ("127.0.0.1", int(self.url.rsplit(":", 1)[1])))
        return s

    def exchange(self, data, method="GET", over_socket=False):
        """Sends the bytes and returns the first answer; its status is "" if the daemon only closes."""
        s = self.connect(over_socket)
        try:
            for at in range(0, len(data), 65536):
                if at and select.select([s], [], [], 0)[0]:
                    break # refused before all of it was sent
                s.sendall(data[at:at + 65536])
        except OSError:
            pass
        received = Received()
        try:
            while received.write(s.recv(1 << 20)):
                pass
        except OSError:
            pass
        s.close()
        received.seek(0)
        answer = http.client.HTTPResponse(received, method=method)
        try:
            answer.begin()
            return Answer(str(answer.status), answer.headers, answer.read(), received.read())
        except http.client.HTTPException:
            return Answer("", {}, b"", b"")

    def request(self, method, path, headers, body, who):
        head = {"Host": self.url[7:], "Connection": "close"}
        if body is not None:
            chunked = any(h.lower() == "transfer-encoding" for h, _ in headers)
            head.update({"Content-Type": "application/json"} if chunked else {"Content-Type": "application/json", "Content-Length": len(body)})
            body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body) if chunked else body
        if who not in ("nobody", "socket"):
            head["Authorization"] = "Bearer " + self.token(who)
        given = {h.lower() for h, _ in headers}
        lines = ["%s: %s" % pair for pair in [p for p in head.items() if p[0].lower() not in given] + headers]
        data = "\r\n".join(["%s %s HTTP/1.1" % (method, path)] + lines + ["", ""]).encode("utf-8", "surrogateescape")
        return self.exchange(data + (body or b""), method, who == "socket")

    def token(self, who):
        if who not in self.tokens:
            body = json.dumps({"name": who, "role": self.users[who]}).encode()
            self.tokens[who] = self.request("POST", "/v1/tokens", [], body, "socket").document["token"]
        return self.tokens[who]


# ---------------------------------------------------------------- checks

def follow(value, pointer):
    """The value at a JSON pointer; a list for one with * or [KEY=VALUE]; Wrong where there is none."""
    words = re.findall(r"/(\[[^]]*\]|[^/]*)", pointer)
    for i, word in enumerate(words):
        word, rest = word.replace("~1", "/").replace("~0", "~"), "".join("/" + w for w in words[i + 1:])
        if word == "*" or word.startswith("["):
            key, _, wanted = word[1:-1].partition("=")
            found = list(value.values()) if isinstance(value, dict) else value
            return [follow(v, rest) for v in found if word == "*" or str(v.get(key)) == wanted]
        if "," in word and isinstance(value, dict) and not rest:
            return [value.get(key) for key in word.split(",")]
        try:
            value = value[int(word)] if isinstance(value, list) else value[word]
        except (KeyError, IndexError, TypeError, ValueError):
            raise Wrong("%s: there is nothing" % pointer)
    return value


def merge(into, patch):
    if not isinstance(patch, dict) or not isinstance(into, dict):
        return patch
    return {k: merge(into.get(k), patch[k]) if k in patch else into[k] for k in {**into, **patch} if patch.get(k, 0) is not None}


def sum_of(text):
    """JSON + JSON as one document; any other text as it is."""
    decoder, at, whole = json.JSONDecoder(), 0, None
    try:
        while True:
            value, at = decoder.raw_decode(text, at)
            plus = re.compile(r"\s*\+\s*").match(text, at)
            if whole is None and not plus:
                return text
            whole = value if whole is None else merge(whole, value)
            if not plus:
                return json.dumps(whole) if at == len(text) else text
            at = plus.end()
    except (ValueError, RecursionError):
        return text


def compare(what, got, op, text, root=None):
    if op in ("~", "!~"):
        said = got if isinstance(got, str) else json.dumps(got, ensure_ascii=False)
        good = bool(re.search(text, said, re.M)) == (op == "~")
    elif op == "is":
        good = isinstance(got, TYPES[text]) and (text != "number" or not isinstance(got, bool))
    else:
        wanted = follow(root, text) if text.startswith("/") else len(json.loads(text[:-7])) if text.endswith("] length") else json.loads(text)
        same = got == wanted and isinstance(got, bool) == isinstance(wanted, bool)
        good = {"=": lambda: same, "!=": lambda: not same, "<": lambda: got < wanted, ">": lambda: got > wanted,
                "has": lambda: wanted in got, "lacks": lambda: wanted not in got}[op]()
    if not good:
        raise Wrong("%s\n  got:      %s\n  expected: %s %s" % (what, json.dumps(got, ensure_ascii=False)[:1000], op, text))


class Answer:
    def __init__(self, status, headers, body, rest):
        self.status, self.headers, self.text, self.rest = status, headers, body.decode("utf-8", "replace"), rest.decode("utf-8", "replace")
        try:
            self.document = json.loads(self.text)
        except (ValueError, RecursionError):
            self.document = None

    def check_head(self, wanted, who):
        """STATUS [TYPE [~ WORDS]], or "allowed to ROLE"."""
        m = re.match(r"allowed to (\w+)$", wanted)
        if m:
            status, kind, words = (r"(?!401|403)[2-5]..", None, "") if m[1] in REACH.get(who, {"anyone"}) else ("401" if who == "nobody" else "403", "", "")
        else:
            status, kind, words = re.fullmatch(r"(\S*)(?: ([a-z-]+))?(?: ~ (.*))?", wanted).groups()
        if not re.fullmatch(status, self.status):
            raise Wrong("status\n  got:      %s\n  expected: %s" % (self.status, status))
        if kind is not None:
            compare("Content-Type", self.headers.get("Content-Type") or "", "~", "^application/problem\\+json")
            problem = self.document if isinstance(self.document, dict) else {}
            compare("its status", str(problem.get("status")), "~", "^%s$" % status)
            compare("problem type", problem.get("type", ""), "~", ":%s$" % kind if kind else "")
            said = [str(problem.get("detail"))] + [str(e[k]) for e in problem.get("errors", []) for k in ("pointer", "message", "suggestion") if k in e]
            compare("its words", "\n".join(said), "~", words or "")

    def look_up(self, place):
        if place.startswith("header "):
            return self.headers.get(place[7:])
        return self.text if place == "body" else self.rest if place == "rest" else follow(self.document, "" if place == "document" else place)

    def check(self, line):
        m = re.match(r"(header \S+|body|rest|document|/(?:\[[^]]*\]|\S)*)(?: (sorted|length))? (=|!=|<|>|~|!~|has|lacks|is) ?(.*)$", line)
        if not m:
            raise Wrong("this check is not understood: " + line)
        place, form, op, text = m.groups()
        if (op, text) == ("is", "missing"):
            try:
                if self.look_up(place) is not None or place[0] == "/":
                    raise ValueError("%s is there: %s" % (place, str(self.look_up(place))[:300]))
            except Wrong:
                pass
            except ValueError as e:
                raise Wrong(str(e))
            return
        got = self.look_up(place)
        got = sorted(got) if form == "sorted" else len(got) if form == "length" else got
        compare(line[:m.start(3)].strip(), got if got is not None or place[0] == "/" else "", op, text, self.document)


# ---------------------------------------------------------------- the run

class Run:
    def __init__(self, path, only):
        self.path, self.only, self.daemon, self.count, self.failed = path, only, Daemon(), 0, 0
        self.variables = {"fixture": FIXTURE, "work": self.daemon.work, "state": self.daemon.state, "top": SOURCE, "build": BUILD, "now": str(int(time.time()))}

    def report(self, name, line, details):
        self.failed += bool(details)
        if self.only in name or details:
            self.count += 1
            print("%sok %d - %s%s" % ("not " if details else "", self.count, name.replace("#", ""), " (line %d)" % line if line else ""), flush=True)
            text = "\n".join(details + ["to run it: make check TESTS=%s CASE='%s'" % (self.path, name)] if details and line else details)
            print(re.sub("(?m)^", "#   ", text) + "\n" if details else "", end="", flush=True)

    def start(self):
        if not self.daemon.process:
            self.daemon.start()
            self.variables.update(url=self.daemon.url, host=self.daemon.url[7:], socket=self.daemon.state + "/traind.sock")

    def act(self, text, bound={}):
        """A line with sql or run; True if the text is one."""
        m = ACTION.match(text)
        if m:
            variables = self.names(bound)
            command, wanted = substitute(m["text"], variables) if m["verb"] == "sql" else m["text"], substitute(m["wanted"] or "", variables)
            self.until(m["eventually"], lambda: self.act_once(m["verb"], command, m["op"], wanted, variables))
        return m

    def names(self, bound):
        return {**self.variables, **{k: substitute(v, self.variables) for k, v in bound.items()}}

    def act_once(self, verb, command, op, wanted, variables):
        if verb == "run":
            done = subprocess.run(["bash", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=self.daemon.work,
                                  env={**os.environ, **{k: v for k, v in variables.items() if len(str(v)) < 10000}}, errors="replace")
            got, failed = done.stdout.strip(), done.returncode and not op
        else:
            database = sqlite3.connect(self.daemon.state + "/traind.db", timeout=60, isolation_level=None)
            rows = database.execute(command).fetchall() if op else database.executescript(command).fetchall()
            database.close()
            got, failed = "\n".join("|".join("" if v is None else str(v) for v in row) for row in rows), False
        if failed or op == "=>" and got != wanted.replace("\\n", "\n") or op == "=~" and not re.search(wanted, got, re.M):
            raise Wrong("%s %s\n  got:      %s\n  expected: %s" % (verb, command, got[-1500:], wanted or "success"))

    def until(self, eventually, attempt):
        began = time.monotonic()
        while True:
            try:
                return attempt()
            except Wrong:
                waited = time.monotonic() - began
                if not eventually or waited > 600:
                    raise
                time.sleep(0.05 if waited < 2 else 0.5)

    def between(self, n, text, bound):
        """A line that is no case. A named sql or run is reported; what is wrong with another ends the run."""
        action, details = ACTION.match(text), []
        if action:
            if action["name"] or action["verb"] == "sql" and not os.path.exists(self.daemon.state + "/traind.db"):
                self.start()
            try:
                self.act(text, bound)
            except (Wrong, sqlite3.Error) as e:
                details = str(e).splitlines()
            if action["name"] or details:
                self.report(substitute(action["name"] or text, self.names(bound)), n, details)
            return
        verb, _, rest = text.partition(" ")
        if verb[0] == "$":
            self.variables[verb[1:]] = substitute(rest[2:], self.names(bound))
        elif verb == "user":
            self.daemon.users.update([rest.split()])
        elif verb in ("setting", "restart", "reload", "kill"):
            if rest:
                self.daemon.settings.update([re.split(r" ?= ?", substitute(rest, self.names(bound)), maxsplit=1)])
            if verb == "reload":
                self.daemon.reload()
            elif verb != "setting":
                code = self.daemon.stop(signal.SIGKILL if verb == "kill" else signal.SIGTERM)
                self.report("the daemon stops in order", n, ["exit code %d" % code] if code and verb == "restart" else [])
        elif verb == "coverage":
            self.report("every route and status of openapi.json has a case", n, pairs_without_a_case())
        elif verb != "untested":
            sys.exit("%s:%d: this line is not understood: %s" % (self.path, n, text))

    def run_case(self, case):
        name = substitute(case.name, self.names(case.bound)) + "".join(" (%s)" % v[:60] for k, v in case.bound.items() if "$" + k not in case.name)
        details, self.answer = [], None
        try:
            self.until(case.wanted.startswith("eventually "), lambda: self.ask_and_check(case))
        except (Wrong, KeyError, TypeError, ValueError, re.error, sqlite3.Error) as e:
            details = ("" if isinstance(e, Wrong) else type(e).__name__ + ": ") + str(e)
            details = details.splitlines()
        if details and self.answer:
            details += ["%s %s" % (case.method, case.path), "answer: %s %s" % (self.answer.status, self.answer.text[:1500])]
        self.report(name, case.line, details)

    def ask_and_check(self, case):
        variables, headers, body = self.names(case.bound), [], None
        who = substitute(case.who or ("admin" if self.daemon.settings["require_token"] == "yes" else "nobody"), variables)
        for after, text in case.lines:
            if not after and not self.act(text, case.bound):
                text = substitute(text, variables)
                header = re.match(r"([A-Za-z-]+): ?(.*)$", text) if body is None else None
                if header:
                    headers.append(header.groups())
                else:
                    body = text if body is None else body + "\n" + text
        if body is not None:
            body = (open(os.path.join(self.daemon.work, body[1:]), "rb").read() if body.startswith("@") else
                    body[6:].encode().decode("unicode_escape").encode("latin-1") if body.startswith("bytes ") else sum_of(body).encode())
        method, path = substitute(case.method, variables), substitute(case.path, variables)
        if method == "RAW":
            answer = self.daemon.exchange(path[1:-1].encode().decode("unicode_escape").encode("latin-1"))
        else:
            answer = self.daemon.request(method, path, headers, body, who)
            self.check_status(method, path, answer.status)
        self.answer = answer
        wanted = substitute(case.wanted, variables).replace("eventually ", "")
        if wanted != "any":
            answer.check_head(wanted, who)
        for after, text in case.lines:
            if after and not self.act(text, case.bound):
                capture = re.match(r"\$(\w+) = (.*)$", text)
                if capture:
                    value = answer.look_up(substitute(capture[2], variables))
                    self.variables[capture[1]] = value if capture[2].startswith("header ") else json.dumps(value).strip('"')
                    variables = self.names(case.bound)
                elif text.startswith("pages of "):
                    self.check_pages(path, who, answer.document, *text.split()[2:])
                else:
                    answer.check(substitute(text, variables))

    def check_pages(self, path, who, whole, limit, pointer):
        """Pages of so many have the same at the pointer as the whole list."""
        path, _, query = path.partition("?")
        found, after, path = [], "", path + "?" + re.sub(r"&?limit=\d+$|limit=\d+&", "", query) + "&limit=" + limit
        while after is not None and len(found) <= 1000:
            page = self.daemon.request("GET", path.replace("?&", "?") + after, [], None, who).document
            found += follow(page, pointer)
            after = page["next"] and "&after=" + urllib.parse.quote(str(page["next"]))
        compare("its pages of " + limit, found, "=", json.dumps(follow(whole, pointer)))

    def check_status(self, method, path, status):
        """The answer's status is one that openapi.json has for the route, or one of HTTP's own, which any path can have."""
        op = OPENAPI["paths"].get(route_of(method, path) or "", {}).get(method.lower())
        if op and status not in op["responses"] and status not in ("", "304", "405", "414"):
            raise Wrong("openapi.json does not have the status %s for this route" % status)

    def run(self):
        try:
            for item in read_cases(self.path):
                if isinstance(item, Case):
                    self.start()
                    self.run_case(item)
                else:
                    self.between(*item)
            code = self.daemon.stop()
            log = open(self.daemon.work + "/daemon.log", errors="replace").read()
            self.report("the daemon stops in order", 0, log.splitlines()[-20:] if code or re.search("runtime error|(Address|Leak)Sanitizer", log) else [])
        finally:
            self.daemon.end()
        print("1..%d" % self.count)
        return self.failed > 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    sys.exit(Run(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else os.environ.get("CASE", "")).run())
