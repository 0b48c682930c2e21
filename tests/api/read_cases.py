"""Reads the files of API cases, whose format is at the top of run_cases.py: the lines in order, loops unrolled; and finds what openapi.json has
and no case tries."""
import json, os, re, sys

SOURCE = os.environ.get("top_srcdir") or os.path.abspath(os.path.dirname(__file__) + "/../..")
OPENAPI = json.load(open(SOURCE + "/schema/openapi.json"))
ROUTES = [(m.upper(), p, op) for p, item in OPENAPI["paths"].items() for m, op in item.items()]
PATTERNS = [(m, p, re.compile(re.sub(r"{\w+}", "[^/?]+", p) + r"(\?|$)")) for m, p, _ in sorted(ROUTES, key=lambda r: r[1].count("{"))]
REACH = {r["name"]: {r["name"], *r["includes"]} for r in OPENAPI["x-roles"]} # the roles whose routes each may use
HEAD = re.compile(r"(?P<name>.+?): (?P<method>(?!run |sql )[A-Za-z]+|\$method) (?P<path>\".*\"|[/$]\S*)(?: as (?P<who>[\w$]+))?(?: (?P<rest>.*))?$")
COMMAND = re.compile(r"(?P<name>.+?): (?P<method>trainctl)(?: (?P<path>.*?))??(?P<who>)(?P<rest> -> .*)?$")
ACTION = re.compile(r"(?:(?P<name>[^\"$]+?): )?(?P<eventually>eventually )?(?P<verb>sql|run) (?P<text>.*?)(?: (?P<op>=>|=~) ?(?P<wanted>.*))?$")


class Wrong(Exception):
    """What a check found; its lines are shown below "not ok"."""


class Case:
    def __init__(self, line, text, bound):
        self.line, self.bound, self.lines, self.wanted = line, bound, [], None
        m = COMMAND.match(text) or HEAD.match(text)
        self.name, self.method, self.path, self.who = m["name"], m["method"], m["path"] or "", m["who"]
        if m["rest"] or text.endswith(" -> "):
            self.add(m["rest"])

    def add(self, text):
        before, arrow, after = (" " + text).partition(" -> ") if self.wanted is None else ("", "", text)
        if before.strip():
            self.lines.append((False, before.strip()))
        checks = re.split(r"; (?=/|header |body |document |error |\$\w+ = )", after.strip())
        if arrow:
            self.wanted = checks.pop(0)
        self.lines += [(True, check) for check in checks if check]


def values_of(words):
    """The values of a loop. Of "[METHOD] routes [/PREFIX] [with body|id]" it is the routes of openapi.json; with body the id is 1, else none that exists."""
    m = re.fullmatch(r"(?:([A-Z]+) )?routes(?: (/\S*))?(?: with (body|id))?", words[0])
    if not m:
        return words
    chosen = [(method, path) for method, path, op in ROUTES if m[1] in (None, method) and path.startswith(m[2] or "/") and
              (not m[3] or ("requestBody" in op if m[3] == "body" else "requestBody" not in op and "{id}" in path))]
    return ["%s %s" % (method, re.sub(r"{\w+}", "7", path.replace("{id}", "1" if m[3] == "body" else "999999"))) for method, path in chosen]


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
                    parts = [word] if len(names) == 1 else word.split(" | ") if " | " in word else word.split(None, len(names) - 1)
                    end = block(at, {**bound, **dict(zip(names, parts + [""] * len(names)))}, out)
                at = end
            elif text[0].isspace():
                out[-1].add(text.strip())
            elif (COMMAND.match(text) or HEAD.match(text)) and not ACTION.match(text):
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


def statuses_of(case, static):
    """The statuses that openapi.json may have of what a case expects."""
    who, role = static(case.who or ""), re.match(r"allowed to (\w+)", static(case.wanted))
    if role:
        return [] if role[1] in REACH.get(who, {"anyone"}) else ["401" if who == "nobody" else "403"]
    return re.findall("[1-5][0-9][0-9]", static(case.wanted).replace("eventually ", "").split(" ")[0])


def pairs_without_a_case():
    """Of route and status in openapi.json, those that no case of any file and no example of openapi.json tries, nor a line
    "untested METHOD PATH STATUS: WHERE" excepts."""
    tried, folder = set(), SOURCE + "/tests/api/cases/"
    for file in filter(lambda f: f.endswith(".cases"), os.listdir(folder)):
        for item in read_cases(folder + file):
            if isinstance(item, Case):
                static = lambda text: re.sub(r"\$([a-z_]\w*)", lambda m: item.bound.get(m[1], m[0]), text)
                method, path = static(item.method).replace("HEAD", "GET"), static(item.path)
                tried.update((method, route_of(method, path) or "/", code) for code in statuses_of(item, static))
            elif item[1].startswith("untested "):
                tried.add(tuple(item[1].split(":")[0].split()[1:]))
    for m, p, op in ROUTES:
        tried.update((m, p, code) for code, r in op["responses"].items() if any(kind.get("examples") for kind in r.get("content", {}).values()))
    return ["%s %s: no case has the status %s" % (m, p, code) for m, p, op in ROUTES for code in op["responses"]
            if code != "default" and not tried & {(m, p, code), ("*", "*", code)}]
