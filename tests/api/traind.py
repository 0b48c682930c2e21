"""A traind for tests, with settings, tokens and a folder of its own, and requests to it byte by byte."""
import http.client, io, json, os, re, select, shutil, signal, socket, subprocess, sys, tempfile, time

SOURCE = os.environ.get("top_srcdir") or os.path.abspath(os.path.dirname(__file__) + "/../..")
BUILD = os.environ.get("top_builddir") or os.getcwd()
os.environ.setdefault("TRAIND_PRESETS", SOURCE + "/etc/presets")
os.environ.pop("TRAIND_STATE", None)


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
        self.state, self.process, self.tokens, self.users = self.work + "/state", None, {}, {r: r for r in ("read", "submit", "operator", "node", "admin")}

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
        self.log = open(self.work + "/daemon.log", "a")
        self.process = subprocess.Popen([os.environ.get("TRAIND") or BUILD + "/traind", "--config", self.work + "/traind.conf", "--state", self.state,
                                         "--listen", "127.0.0.1:0"], stdout=self.log, stderr=self.log, stdin=subprocess.DEVNULL)
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
        """Sends the bytes; returns status ("" if the daemon only closes), headers and body of the first answer, and what follows it."""
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
            return str(answer.status), answer.headers, answer.read(), received.read()
        except http.client.HTTPException:
            return "", {}, b"", b""

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
            self.tokens[who] = json.loads(self.request("POST", "/v1/tokens", [], body, "socket")[2])["token"]
        return self.tokens[who]
