#!/usr/bin/env python3
"""A receiver of notices on the loopback, for tests: appends each request as a JSON line {"path", "headers", "body", "t"} to LOG.

receiver.py LOG [CERTIFICATE KEY]

Writes its port to LOG.port when it listens. The path of a request says what it answers:
  /fail... 500   /gone... 410   /to/STATUS/URL a redirect   /flaky/N... 503 to the first N requests of this path
  /third... 503 to every third   /nap... 204 after a tenth of a second
  /later/SECONDS... 429 with Retry-After to the first   /silent... nothing for a minute   /large... a megabyte   all else 204
It is a proxy too: a request for http://HOST:PORT/... is passed on to the loopback, whatever HOST is, and logged as such.
"""
import collections
import http.client
import http.server
import json
import os
import ssl
import sys
import threading
import time
import urllib.parse

log_path = sys.argv[1]
seen = collections.Counter()
lock = threading.Lock()


def answer_of(path):
    """(status, headers, body)"""
    parts = path.split("/", 3)
    with lock:
        seen[path] += 1
        times = seen[path]
    if path.startswith("/fail"):
        return 500, {}, b""
    if path.startswith("/gone"):
        return 410, {}, b""
    if path.startswith("/to/"):
        return int(parts[2]), {"Location": parts[3]}, b""
    if path.startswith("/flaky/"):
        return (503 if times <= int(parts[2]) else 204), {}, b""
    if path.startswith("/third"):
        return (503 if times % 3 == 1 else 204), {}, b""
    if path.startswith("/nap"):
        time.sleep(0.1)
    if path.startswith("/later/") and times == 1:
        return 429, {"Retry-After": parts[2]}, b""
    if path.startswith("/large"):
        return 200, {}, b"x" * 1000000
    if path.startswith("/silent"):
        time.sleep(60)
    return 204, {}, b""


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def note(self, body):
        line = json.dumps({"path": self.path, "headers": dict(self.headers), "body": body, "t": time.time()})
        with lock, open(log_path, "a") as log:
            log.write(line + "\n")

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.note(body.decode())
        if self.path.startswith("http://"):
            status, headers, data = self.pass_on(body)
        else:
            status, headers, data = answer_of(self.path)
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def pass_on(self, body):
        url = urllib.parse.urlsplit(self.path)
        with lock:
            connection = http.client.HTTPConnection("127.0.0.1", url.port or 80)
        connection.request("POST", url.path, body, dict(self.headers))
        return connection.getresponse().status, {}, b""

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        """A client that went away is none of ours."""


server = Server(("127.0.0.1", 0), Handler)
if len(sys.argv) > 2:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[2], sys.argv[3])
    server.socket = context.wrap_socket(server.socket, server_side=True)
open(log_path, "a").close()
with open(log_path + ".new", "w") as port:
    port.write(str(server.server_address[1]))
os.rename(log_path + ".new", log_path + ".port")
server.serve_forever()
