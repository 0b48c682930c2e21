#!/usr/bin/python3
"""A mail server on the loopback, for tests: mail_server.py FOLDER puts each mail into FOLDER (a Maildir), with its envelope in X-MailFrom
and X-RcptTo; refuses receivers whose name begins with "nobody"; writes its port to FOLDER.port when it listens."""
import asyncio
import os
import sys

from aiosmtpd.handlers import Mailbox
from aiosmtpd.smtp import SMTP

folder = sys.argv[1]


class Receiver(Mailbox):
    async def handle_RCPT(self, server, session, envelope, address, options):
        if address.startswith("nobody"):
            return "550 there is no such user here"
        envelope.rcpt_tos.append(address)
        return "250 OK"


async def serve():
    server = await asyncio.get_running_loop().create_server(lambda: SMTP(Receiver(folder)), "127.0.0.1", 0)
    with open(f"{folder}.part", "w", encoding="ascii") as file:
        file.write(str(server.sockets[0].getsockname()[1]))
    os.rename(f"{folder}.part", f"{folder}.port")
    await server.serve_forever()


asyncio.run(serve())
