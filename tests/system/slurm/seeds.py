#!/usr/bin/env python3
"""Reads doc/seeds.md and writes what is to be tried as lines of bash, which tests/system/slurm/seeds.sh reads:

    row LINE NAME         a row of a table, or a fenced block, begins
    try COMMAND           a command of a table's middle column, or all of a block
    answers TEXT          what stands behind an arrow: the last command must have said it
    refused COMMAND       a command whose row says "refused"
    plan DOCUMENT         parts of a job document in a row's middle column, as one object
    key NAME              a key of a job document, of traind.conf, or a function of libtraincomm, wherever it is named

In a middle column headed "traind" code that is none of these is an error, so that nothing goes untried."""

import json
import re
import shlex
import sys

COMMAND = re.compile(r"(trainctl|train-prep|jq|curl|mpirun|cc) |\w+=\$\(")
KEY = re.compile(r"(model|data|cluster|lr|optimizer|eval|checkpoint|comm|profile|log|tensorboard|restart|slurm)\.[a-z_0-9]+")
PART = re.compile(r'"\w+": .*')
SPAN = re.compile(r"(→ |, |refused: )?`([^`]+)`")
PROSE = {"./quickstart --no-run"}


def say(word, *texts):
    print(word, *(shlex.quote(str(text)) for text in texts))


def leaves(value, path=()):
    if isinstance(value, dict) and path != ("cluster", "env"):  # whose names are free
        for name, inner in value.items():
            yield from leaves(inner, (*path, name))
    else:
        yield ".".join(path)


def merge(into, more):
    for name, value in more.items():
        if isinstance(value, dict) and isinstance(into.get(name), dict):
            merge(into[name], value)
        else:
            into[name] = value


def name_keys(text):
    for _, span in SPAN.findall(text):
        if PART.fullmatch(span):
            for path in leaves(json.loads("{" + span + "}")):
                say("key", path)
        elif KEY.fullmatch(span) or span.startswith("traincomm_"):
            say("key", span)


def middle(line, text):
    document, behind = {}, None
    refusal = "refused: `" in text
    for lead, span in SPAN.findall(text):
        if lead in ("→ ", "refused: ") or (lead == ", " and behind == "→ " and not COMMAND.match(span)):
            say("answers", span)
            behind = "→ "
        elif COMMAND.match(span):
            say("refused" if refusal else "try", span)
            behind = None
        elif PART.fullmatch(span):
            merge(document, json.loads("{" + span + "}"))
        elif not (KEY.fullmatch(span) or span == "mode" or span.startswith("$") or span in PROSE):
            sys.exit(f"line {line}: {span} is neither a command nor a part of a job document")
    if document:
        say("plan", json.dumps(document))


def main():
    block, items = None, False
    with open(sys.argv[1], encoding="utf-8") as page:
        lines = page.read().split("\n")
    for number, line in enumerate(lines, 1):
        if block is not None:
            if line == "```":
                say("try", "\n".join(block))
                block = None
            else:
                block.append(line)
        elif line == "```sh":
            say("row", number, "block")
            block = []
        elif line.startswith("| "):
            cells = [cell.strip().replace(r"\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            if lines[number].startswith("|---"):
                items = cells[1] == "traind"
                continue
            say("row", number, cells[0])
            name_keys(line)
            if items:
                middle(number, cells[1])
        else:
            name_keys(line)
    say("row", 0, "")


main()
