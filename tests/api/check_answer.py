"""The checks of API cases: JSON pointers, JSON + JSON, and an answer with what it is compared with."""
import json, re

from read_cases import OPENAPI, REACH, Wrong, route_of

TYPES = {"number": (int, float), "string": str, "array": list, "object": dict, "boolean": bool, "null": type(None)}


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
        try:
            good = {"=": lambda: same, "!=": lambda: not same, "<": lambda: got < wanted, ">": lambda: got > wanted,
                    "has": lambda: wanted in got, "lacks": lambda: wanted not in got}[op]()
        except TypeError: # as null is less than no number
            good = False
    if not good:
        raise Wrong("%s\n  got:      %s\n  expected: %s %s" % (what, json.dumps(got, ensure_ascii=False)[:1000], op, text))


class Answer:
    """An answer to a request, or of trainctl: its exit code, output and, as the rest, errors."""
    def __init__(self, status, headers, body, rest):
        self.status, self.headers, self.text, self.rest = status, headers, body.decode("utf-8", "replace"), rest.decode("utf-8", "replace")
        try:
            self.document = json.loads(self.text)
        except (ValueError, RecursionError):
            self.document = None

    def check_head(self, wanted, who):
        """STATUS [TYPE] [~ WORDS], or "allowed to ROLE"."""
        m = re.match(r"allowed to (\w+)$", wanted)
        if m:
            status, kind, words = (r"(?!401|403)[2-5]..", None, "") if m[1] in REACH.get(who, {"anyone"}) else ("401" if who == "nobody" else "403", "", "")
        else:
            m = re.fullmatch(r"(\S*)(?: ([a-z-]+))?(?: ~ (.*))?", wanted)
            if not m:
                raise Wrong("this expectation is not understood: " + wanted)
            status, kind, words = m.groups()
        if not re.fullmatch(status, self.status):
            raise Wrong("status\n  got:      %s\n  expected: %s" % (self.status, status))
        if kind is not None:
            compare("Content-Type", self.headers.get("Content-Type") or "", "~", "^application/problem\\+json")
            problem = self.document if isinstance(self.document, dict) else {}
            compare("its status", str(problem.get("status")), "~", "^%s$" % status)
            compare("problem type", problem.get("type", ""), "~", ":%s$" % kind if kind else "")
            said = [str(problem.get("detail"))] + [str(e[k]) for e in problem.get("errors", []) for k in ("pointer", "message", "suggestion") if k in e]
            compare("its words", "\n".join(said), "~", words or "")
        elif words:
            compare("its words", self.text + self.rest, "~", words)

    def look_up(self, place):
        if place.startswith("header "):
            return self.headers.get(place[7:])
        return self.text if place == "body" else self.rest if place in ("rest", "error") else follow(self.document, "" if place == "document" else place)

    def check(self, line):
        m = re.match(r"(header \S+|body|error|rest|document|/(?:\[[^]]*\]|\S)*)(?: (sorted|length))? (=|!=|<|>|~|!~|has|lacks|is) ?(.*)$", line)
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

    def check_status(self, method, path):
        """The status is one that openapi.json has for the route, or one of HTTP's own, which any path can have."""
        op = OPENAPI["paths"].get(route_of(method, path) or "", {}).get(method.lower())
        if op and self.status not in op["responses"] and self.status not in ("", "304", "405", "414", "500"):
            raise Wrong("openapi.json does not have the status %s for this route" % self.status)
