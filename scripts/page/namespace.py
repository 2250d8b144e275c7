"""A network namespace for the live checks: the service, the browser and their links have no part of the machine's network."""

import os
import pathlib
import signal
import subprocess
import sys
import threading

# A server behind the uplink. Its namespace ends with it.
SERVER = """
import socket
server = socket.socket()
server.bind(("", 7000))
server.listen(64)
print("ready", flush=True)
while True: server.accept()[0].close()
"""


def run_inside(script, arguments):
    """Runs the script again in a new network namespace. - Returns: Its exit code; `None` if the machine allows no namespace.

    All its processes are in a PID namespace too. The first of them ends when this process ends, also by SIGKILL, and with it all others,
    and the namespaces: nothing has a name that would remain.
    """
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    unshare = ["unshare", *user, "--net", "--mount", "--pid", "--mount-proc", "--kill-child"]
    if subprocess.run([*unshare, "true"], stderr=subprocess.DEVNULL).returncode != 0:
        return None
    inside = subprocess.Popen([*unshare, sys.executable, script, "--inside", *arguments], stdin=subprocess.PIPE)
    try:
        return inside.wait()
    except KeyboardInterrupt:
        return 130


def begin():
    """Follows the end of the process outside, which holds the other end of standard input."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def follow():
        os.read(0, 1)
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()
    command("ip", "link", "set", "lo", "up")


def command(*words):
    subprocess.run(words, check=True)


class Uplink:
    """A pair of links: one end is the only uplink of this namespace, the other is the default gateway and the server."""

    target = "192.0.2.1:7000"

    def __init__(self):
        self.server = subprocess.Popen(
            ["unshare", "--net", sys.executable, "-c", SERVER], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        self.server.stdout.readline()
        command("ip", "link", "add", "uplink", "type", "veth", "peer", "name", "peer", "netns", str(self.server.pid))
        self.run_in_server("ip", "address", "add", "192.0.2.1/24", "dev", "peer")
        self.run_in_server("ip", "link", "set", "peer", "up")
        command("ip", "address", "add", "192.0.2.2/24", "dev", "uplink")
        self.set_up()
        self.cuts = [
            ("the cable is pulled", lambda: self.run_in_server("ip", "link", "set", "peer", "down"),
             lambda: self.run_in_server("ip", "link", "set", "peer", "up")),
            ("the link is set down", lambda: command("ip", "link", "set", "uplink", "down"), self.set_up),
        ]

    def set_up(self):
        command("ip", "link", "set", "uplink", "up")
        # The kernel removes the routes of a link that is set down.
        command("ip", "route", "add", "default", "via", "192.0.2.1")

    def run_in_server(self, *words):
        command("nsenter", "--net", "--target", str(self.server.pid), *words)
