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
    a command: trainctl list --lmit 3 -> 2 ~ did you mean --limit              its exit code; "body" is what it prints, "error" its errors
        sql select count(*) from job => 1          sql and run (by bash): also alone, between cases, and before the arrow
"""
import json, os, re, shlex, signal, socket, sqlite3, subprocess, sys, time, urllib.parse

from check_answer import Answer, compare, follow, sum_of
from read_cases import ACTION, SOURCE, Case, Wrong, pairs_without_a_case, read_cases, substitute
from traind import BUILD, Daemon

FIXTURE = """{"cluster": {"workers_per_node": 2, "threads_per_worker": 1}, "data": {"train": "synthetic", "train_images": 64},
 "batch_per_worker": 4, "steps": 4, "restart": {"max": 0}, "model": {"image_size": 32, "classes": 10}}"""
MISTAKES = (Wrong, KeyError, TypeError, ValueError, re.error, sqlite3.Error) # the latter are of the case itself


class Run:
    def __init__(self, path, only):
        self.path, self.only, self.daemon, self.count, self.failed = path, only, Daemon(), 0, 0
        self.variables = {"fixture": FIXTURE, "work": self.daemon.work, "state": self.daemon.state, "top": SOURCE, "build": BUILD,
                          "now": str(int(time.time())), "host": socket.gethostname()}

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
            self.variables.update(url=self.daemon.url, socket=self.daemon.state + "/traind.sock")

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
            except (Wrong, KeyError, TypeError): # the answer may not have yet what is checked
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
            except MISTAKES as e:
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
        except MISTAKES as e:
            details = (str(e) if isinstance(e, Wrong) else "%s: %s" % (type(e).__name__, e)).splitlines()
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
        if method == "trainctl":
            answer = self.call_trainctl(path)
        elif method == "RAW":
            answer = Answer(*self.daemon.exchange(path[1:-1].encode().decode("unicode_escape").encode("latin-1")))
        else:
            answer = Answer(*self.daemon.request(method, path, headers, body, who))
            answer.check_status(method, path)
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

    def call_trainctl(self, arguments):
        done = subprocess.run([BUILD + "/trainctl"] + shlex.split(arguments), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              cwd=self.daemon.work, env={"TRAINCTL_SERVER": self.daemon.url, **os.environ, "XDG_CONFIG_HOME": self.daemon.work})
        return Answer(str(done.returncode), {}, done.stdout, done.stderr)

    def check_pages(self, path, who, whole, limit, pointer):
        """Pages of so many have the same at the pointer as the whole list."""
        path, _, query = path.partition("?")
        found, after, path = [], "", path + "?" + re.sub(r"&?limit=\d+$|limit=\d+&", "", query) + "&limit=" + limit
        while after is not None and len(found) <= 1000:
            page = Answer(*self.daemon.request("GET", path.replace("?&", "?") + after, [], None, who)).document
            found += follow(page, pointer)
            after = page["next"] and "&after=" + urllib.parse.quote(str(page["next"]))
        compare("its pages of " + limit, found, "=", json.dumps(follow(whole, pointer)))

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
