"""What may answer at a daemon's address in its place. strangers.py MODE: prints its port, then a line per request."""
import socket, sys, threading, time

PAGE = b"<!DOCTYPE html>\n<title>\x1b[31mAnother program</title>\n"


def answer(client, mode):
    if mode == "page":  # of a program with a page for every address
        client.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n%s" % (len(PAGE), PAGE))
    elif mode == "json":
        client.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")
    elif mode == "gateway":  # in front of a daemon that is not there
        client.sendall(b"HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n%s" % (len(PAGE), PAGE))
    elif mode == "ssh":
        client.sendall(b"SSH-2.0-OpenSSH_9.2p1\r\n")
        return False
    elif mode == "brief":  # streams that end before their first event
        client.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
        time.sleep(0.05)
        return False
    elif mode == "slow":  # an archive that never ends
        client.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/gzip\r\nContent-Length: 1000000\r\n\r\n")
        while True:
            client.sendall(b" ")
            time.sleep(0.05)
    elif mode == "silent":  # an archive that stops in the middle
        client.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/gzip\r\nContent-Length: 1000000\r\n\r\n" + 1000 * b" ")
        time.sleep(3600)
    elif mode == "mute":
        time.sleep(3600)
    elif mode == "trickle":  # one that takes longer than anyone is silent
        client.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/gzip\r\nContent-Length: 50\r\n\r\n")
        for _ in range(50):
            client.sendall(b" ")
            time.sleep(0.1)
    return True


def serve(client, mode):
    head = b""
    try:
        while data := client.recv(65536):
            head += data
            if b"\r\n\r\n" in head:
                print(head.split(b"\r\n")[0].decode(), flush=True)
                head = b""
                if not answer(client, mode):
                    break
    except OSError:
        pass
    client.close()


listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0], sys.argv[1]), daemon=True).start()
