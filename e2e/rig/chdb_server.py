"""The HTTP interface of ClickHouse, as far as the warehouse needs it, over the engine of chDB."""
import http.server
import os
import re
import sys
import tempfile
import threading
import urllib.parse

from chdb import session

address, folder = sys.argv[1:]
engine = session.Session(folder)
turn = threading.Lock()
ABOUT_HTTP = {"query", "query_id", "wait_end_of_query"}


class Server(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.answer(200, b"Ok.\n")

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        asked = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(self.path).query))
        try:
            with turn:
                text = run(asked, body)
            self.answer(200, text)
        except Exception as e:
            self.answer(500, str(e).encode() + b"\n")

    def answer(self, status, body):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        code = re.match(rb"Code: (\d+)", body) if status != 200 else None
        if code:
            self.send_header("X-ClickHouse-Exception-Code", code[1].decode())
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def run(asked, body):
    """run does a statement, with data from the body when the address has the statement."""
    for name in asked.keys() - ABOUT_HTTP:
        engine.query(f"SET {name} = '{asked[name]}'")
    if "query" not in asked:
        return engine.query(body.decode(), "TabSeparated").bytes()
    with tempfile.NamedTemporaryFile(dir=os.path.dirname(folder)) as data:
        data.write(body)
        data.flush()
        statement, form = asked["query"].rsplit(" FORMAT ", 1)
        return engine.query(f"{statement} FROM INFILE '{data.name}' FORMAT {form}").bytes()


host, port = address.split(":")
http.server.ThreadingHTTPServer((host, int(port)), Server).serve_forever()
