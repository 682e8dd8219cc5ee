"""Asks a node service for anything, as somebody of whom another user's job is no business, and looks for that job in the answers.

Arguments: the socket, how many requests, a seed, and as JSON what belongs to the job: `named` (words that requests may hold, which say
nothing if an answer repeats them) and `hidden` (words that nobody says). Prints as JSON what was answered, and what was told of the job.
"""

import json
import random
import re
import socket
import sys
from urllib.parse import quote, unquote_to_bytes

PATIENCE = 20.0
# Who waits for a process to come is answered by nothing.
SHORT_PATIENCE = 0.2
PIPELINED = 16
MOST_TOLD = 20

KEYS = ["pid", "pid-of", "job", "hosts", "duration", "interval", "functions", "filter", "group-by", "max-threads", "attach", "returns"]
FLAGS = ["all-jobs", "json", "traffic", "waits", "once", "no-call-sites", "all-threads", "dot", "folded"]
FORBIDDEN = ["record", "output", "trace", "config", "socket", "file-mode"]
PATHS = ["/v1/jobs", "/v1/service", "/metrics", "/v1/observe", "/v1/trace", "/v1/hang", "/v1/look"]


class Asker:
    def __init__(self, path, seed, secrets):
        self.path, self.random, self.stream, self.left = path, random.Random(seed), None, b""
        self.named, self.hidden = [word.encode() for word in secrets["named"]], [word.encode() for word in secrets["hidden"]]
        self.words = secrets["named"]
        self.patterns = [(word, re.compile(rb"(?<![0-9A-Za-z_])" + re.escape(word) + rb"(?![0-9A-Za-z_])")) for word in self.named]
        self.answers, self.connections, self.told = {}, 0, []

    def tell(self, what):
        if len(self.told) < MOST_TOLD:
            self.told.append(what)

    # The connection.

    def send(self, data, patience):
        if self.stream is None:
            self.stream, self.left = socket.socket(socket.AF_UNIX), b""
            self.stream.connect(self.path)
            self.connections += 1
        self.stream.settimeout(patience)
        try:
            self.stream.sendall(data)
        except OSError:
            # It may have been closed for what was sent first.
            pass

    def close(self):
        if self.stream is not None:
            self.stream.close()
        self.stream = None

    def more(self):
        data = self.stream.recv(1 << 16)
        if not data:
            raise EOFError
        self.left += data

    def answer(self):
        """Status and content of the next answer; `None`: there is none."""
        try:
            while b"\r\n\r\n" not in self.left:
                self.more()
            head, _, rest = self.left.partition(b"\r\n\r\n")
            status = head[9:12].decode("ascii", "replace")
            length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
            if length is None:
                # A stream, which ends by its last chunk or not at all.
                self.left = rest
                try:
                    while not self.left.endswith(b"0\r\n\r\n"):
                        self.more()
                except (EOFError, OSError):
                    pass
                content, self.left = self.left, b""
                self.close()
                return status, head + content
            while len(rest) < int(length[1]):
                self.more()
                rest = self.left.partition(b"\r\n\r\n")[2]
            self.left = rest[int(length[1]):]
            return status, head + rest[: int(length[1])]
        except (EOFError, OSError):
            left, self.left = self.left, b""
            self.close()
            return (left[9:12].decode("ascii", "replace"), left) if left else None

    # What is asked.

    def word(self):
        kind = self.random.randrange(10)
        if kind < 5:
            return self.random.choice(self.words)
        if kind == 5:
            word = list(self.random.choice(self.words))
            word[self.random.randrange(len(word))] = self.random.choice("0123456789*?[]%./x")
            return "".join(word)
        if kind == 6:
            return self.random.choice(["*", "?*", "[0-9]*", "%", "-1", "0", "1", "4294967296", "../../proc/self", "\0", "a" * 300, ""])
        return str(self.random.choice([0, 1, 2, 3, 7, 999, 1 << 22, self.random.randrange(1 << 22)]))

    def query(self):
        pairs = []
        for _ in range(self.random.choice([0, 1, 1, 1, 2, 2, 3])):
            kind = self.random.randrange(40)
            if kind == 0:
                pairs.append(self.random.choice(FORBIDDEN) + "=" + quote(self.word()))
            elif kind < 6:
                pairs.append(self.random.choice(FLAGS))
            elif kind < 30:
                pairs.append(self.random.choice(KEYS[:3]) + "=" + quote(self.word()))
            else:
                pairs.append(self.random.choice(KEYS) + "=" + quote(self.word()))
        return "&".join(pairs)

    def request(self):
        """A request as a program would send it."""
        kind = self.random.randrange(100)
        method, body = "GET", b""
        if kind < 12:
            # What has to be looked up among all processes.
            path = self.random.choice(PATHS[3:]) + "?" + self.query()
        elif kind < 50:
            path = self.random.choice(PATHS[:3])
            if self.random.randrange(2):
                path += "?" + self.query()
        elif kind < 80:
            method = self.random.choice(["POST", "POST", "POST", "GET", "DELETE"])
            number = self.random.choice([*range(12), -1, 1 << 64, self.word()])
            path = f"/v1/observations/{quote(str(number), safe='')}/{self.random.choice(['end', 'recent', 'no-recent', '', 'x'])}"
        else:
            method = self.random.choice(["GET", "GET", "PUT", "OPTIONS", "PATCH", "TRACE", "X"])
            path = "/" + "/".join(quote(self.word(), safe="") for _ in range(self.random.randrange(4)))
        lines = [f"{method} {path} HTTP/1.1", "Host: x"]
        for _ in range(self.random.randrange(3)):
            name = self.random.choice(["Accept", "Authorization", "X-User", "Cookie", "Forwarded", "X-Forwarded-For", "From", "Range"])
            lines.append(f"{name}: {quote(self.word())}")
        if method == "POST" and self.random.randrange(2):
            body = self.word().encode()
            lines.append(f"Content-Length: {len(body)}")
        return "\r\n".join(lines).encode() + b"\r\n\r\n" + body

    def damaged(self):
        data = bytearray(self.request())
        for _ in range(self.random.randrange(1, 6)):
            at = self.random.randrange(len(data) or 1)
            kind = self.random.randrange(4)
            if kind == 0 and data:
                data[at] = self.random.randrange(256)
            elif kind == 1:
                del data[at : at + self.random.randrange(1, 20)]
            elif kind == 2:
                data[at:at] = self.random.randbytes(self.random.randrange(1, 20))
            else:
                data[at:at] = self.random.choice([b"\r\n", b" ", b"Content-Length: 99999999999999999999\r\n", b"Transfer-Encoding: chunked\r\n", b"\0", b"%00", b"HTTP/2.0"])
        return bytes(data)

    # What is answered.

    def check(self, asked, answered):
        status, content = answered
        self.answers[status] = self.answers.get(status, 0) + 1
        for word in self.hidden:
            if word in content:
                self.tell([asked.decode("latin1"), content.decode("latin1")])
        said = asked + unquote_to_bytes(asked)
        for word, pattern in self.patterns:
            if word in content and word not in said and pattern.search(content):
                self.tell([asked.decode("latin1"), content.decode("latin1")])

    def pair(self):
        """What there is and what there is not, asked for in the same words, gets the same answer."""
        word = self.random.choice(self.words)
        other = "".join(self.random.choice("0123456789") if one.isdigit() else self.random.choice("qxzj") if one.isalpha() else one for one in word)
        if word.isdigit():
            other = str((1 << 22) - 1 - self.random.randrange(1000))
        key = "pid" if word.isdigit() else self.random.choice(["pid-of", "job"])
        path = self.random.choice(PATHS[3:]) + f"?{key}="
        given = []
        for one in (word, other):
            asked = f"GET {path}{quote(one)} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
            self.send(asked, PATIENCE)
            answered = self.answer()
            if answered is None:
                return
            self.check(asked, answered)
            content = re.sub(rb"(?i)\r\n(date|content-length): [^\r]*", b"", answered[1])
            # How long a look took, and when it was.
            content = re.sub(rb"\d{4,}(\.\d+)?|\d+\.\d+", b"N", content.replace(one.encode(), b"N"))
            given.append((answered[0], content))
        if given[0] != given[1]:
            self.tell([path, *(f"{status} {content.decode('latin1')}" for status, content in given)])

    def ask(self, count):
        left = count
        while left > 0:
            kind = self.random.randrange(100)
            if kind < 12:
                self.pair()
                left -= 2
            elif kind < 30:
                # Nobody knows where a damaged request ends.
                self.close()
                asked = self.damaged()
                self.send(asked, PATIENCE)
                try:
                    self.stream.shutdown(socket.SHUT_WR)
                except OSError:
                    pass
                while (answered := self.answer()) is not None:
                    self.check(asked, answered)
                    if self.stream is None:
                        break
                self.close()
                left -= 1
            elif kind == 30 and self.random.randrange(20) == 0:
                self.close()
                asked = f"GET /v1/observe?wait&pid-of={quote(self.random.choice(self.words))} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
                self.send(asked, SHORT_PATIENCE)
                answered = self.answer()
                if answered is not None:
                    self.check(asked, answered)
                self.close()
                left -= 1
            else:
                batch = [self.request() for _ in range(min(PIPELINED, left))]
                self.send(b"".join(batch), PATIENCE)
                for asked in batch:
                    answered = self.answer()
                    left -= 1
                    if answered is not None:
                        self.check(asked, answered)
                    if self.stream is None:
                        break
        self.close()


def main():
    path, count, seed, secrets = sys.argv[1:]
    asker = Asker(path, int(seed), json.loads(secrets))
    asker.ask(int(count))
    print(json.dumps({"answers": asker.answers, "connections": asker.connections, "told": asker.told}))


main()
