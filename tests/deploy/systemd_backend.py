"""An HTTP backend inside a machine's network: port, and a file that gets a line "PATH AUTHORIZATION BYTES" for every request."""
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        with open(sys.argv[2], "a", encoding="utf-8") as f:
            f.write(f"{self.path} {self.headers.get('Authorization')} {len(body)}\n")
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
