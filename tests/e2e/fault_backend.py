"""Backends that can be made faulty and healthy again, on plain sockets: one that speaks OTLP/HTTP and one that speaks gRPC.

What a backend takes is what it answers with success to somebody who is still there: a request whose sender has gone is thrown away. `taken`
holds the numbers of all spans that were taken, again and again if they came again.
"""
import select
import socket
import struct
import threading
import time

import h2.config
import h2.connection
import h2.events
import h2.exceptions

from conftest import parse, records

FAULTS = ("refuses", "hangs", "stalls", "resets", "400", "401", "404", "429", "500", "503", "partial", "garbage", "slow")
GARBAGE = b"\x0a\xff\xff\xff\x0f<html>"
CHUNK, PACE_S = 256, 0.25        # slow: 1 KB/s


class Gone(Exception):
    """The connection ends here."""


def partial_reply(rejected=1):
    """ExportTraceServiceResponse{partial_success{rejected_spans, error_message}}"""
    inside = bytes([0x08, rejected, 0x12, 0x02]) + b"no"
    return bytes([0x0A, len(inside)]) + inside


class Backend:
    def __init__(self, port):
        self.port, self.fault = port, None
        self.lock, self.changed = threading.Lock(), threading.Condition()
        self.taken, self.refused, self.attempts = [], [], []      # span numbers; span numbers; (time, fault) of each request that began
        self.connections, self.listener, self.closed = set(), None, False
        self._listen()

    # ---- what tests do

    def make(self, fault):
        """Faulty in this way from now on; None = healthy."""
        with self.changed:
            self.fault = fault
            self.changed.notify_all()
        if fault == "refuses":
            self._hang_up()
        elif self.listener is None:
            self._listen()

    def close(self):
        with self.changed:
            self.closed = True
            self.changed.notify_all()
        self._hang_up()

    # ---- connections

    def _listen(self):
        self.listener = socket.create_server(("127.0.0.1", self.port), backlog=64)
        threading.Thread(target=self._accept, args=(self.listener,), daemon=True).start()

    def _accept(self, listener):
        while True:
            try:
                c, _ = listener.accept()
            except OSError:
                return
            with self.lock:
                self.connections.add(c)
            threading.Thread(target=self._run, args=(c,), daemon=True).start()

    def _run(self, c):
        try:
            self.serve(c)
        except (Gone, OSError, h2.exceptions.ProtocolError):
            pass
        with self.lock:
            self.connections.discard(c)
        c.close()

    def _hang_up(self):
        listener, self.listener = self.listener, None
        if listener:
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        with self.lock:
            for c in self.connections:
                try:
                    c.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    def read(self, c):
        """Some bytes, as slow as the fault wants it."""
        data = c.recv(CHUNK if self.fault == "slow" else 65536)
        if not data:
            raise Gone
        with self.changed:
            self.changed.wait_for(lambda: self.fault != "hangs" or self.closed)
            if self.fault == "stalls":                  # this connection stays silent for ever, new ones are well later
                self.changed.wait_for(lambda: self.closed)
                raise Gone
        if self.fault == "slow":
            time.sleep(PACE_S * len(data) / CHUNK)
        return data

    def reset(self, c):
        """Hangs up so that the sender gets ECONNRESET."""
        c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        raise Gone

    # ---- requests

    def began(self):
        with self.lock:
            self.attempts.append((time.monotonic(), self.fault))

    def took(self, body, leave_out=0):
        numbers = self.numbers(body)
        with self.lock:
            self.taken += numbers[leave_out:]
            self.refused += numbers[:leave_out]

    def numbers(self, body):
        return [x.attributes[0].value.int_value for _, _, x in records("traces", parse("traces", bytes(body)))]


def readable(c):
    return bool(select.select([c], [], [], 0)[0])


class HttpBackend(Backend):
    def serve(self, c):
        data = bytearray()
        while True:
            while b"\r\n\r\n" not in data:
                data += self.read(c)
            self.began()
            head, _, rest = bytes(data).partition(b"\r\n\r\n")
            if self.fault == "resets":
                self.reset(c)
            size = next(int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:"))
            body = bytearray(rest)
            while len(body) < size:
                body += self.read(c)
            data = body[size:]
            if readable(c) and not c.recv(1, socket.MSG_PEEK):
                raise Gone
            self.answer(c, body[:size])

    def answer(self, c, body):
        status, more, reply, fault = "200 OK", "", b"", self.fault
        if fault and fault.isdigit():
            status, more = f"{fault} No", "Retry-After: 1\r\n" if fault == "429" else ""
        elif fault == "partial":
            reply = partial_reply()
        elif fault == "garbage":
            reply = GARBAGE
        if status == "200 OK" and fault != "garbage":
            self.took(body, leave_out=1 if fault == "partial" else 0)
        c.sendall(f"HTTP/1.1 {status}\r\nContent-Type: application/x-protobuf\r\n{more}Content-Length: {len(reply)}\r\n\r\n".encode() + reply)


class GrpcBackend(Backend):
    """Statuses are HTTP statuses without a word of gRPC, as proxies give them."""

    def serve(self, c):
        h = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False, header_encoding="utf-8"))
        h.initiate_connection()
        c.sendall(h.data_to_send())
        bodies, whole = {}, []
        while True:
            for e in h.receive_data(self.read(c)):
                self.see(c, h, e, bodies, whole)
            while whole and not readable(c):            # else the next bytes may take a request back
                stream = whole.pop(0)
                self.answer(h, stream, bodies.pop(stream)[5:])
            c.sendall(h.data_to_send())

    def see(self, c, h, e, bodies, whole):
        if isinstance(e, h2.events.RequestReceived):
            self.began()
            bodies[e.stream_id] = bytearray()
        elif isinstance(e, h2.events.DataReceived):
            if self.fault == "resets":
                self.reset(c)
            if e.stream_id in bodies:
                bodies[e.stream_id] += e.data
            h.acknowledge_received_data(e.flow_controlled_length, e.stream_id)
        elif isinstance(e, h2.events.StreamEnded):
            whole.append(e.stream_id)
        elif isinstance(e, h2.events.StreamReset):
            bodies.pop(e.stream_id, None)
            whole[:] = [s for s in whole if s != e.stream_id]

    def answer(self, h, stream, body):
        fault, reply = self.fault, b""
        if fault and fault.isdigit():
            more = [("retry-after", "1")] if fault == "429" else []
            h.send_headers(stream, [(":status", fault), ("content-type", "text/plain")] + more, end_stream=True)
            return
        if fault == "partial":
            reply = partial_reply()
        elif fault == "garbage":
            reply = GARBAGE
        if fault != "garbage":
            self.took(body, leave_out=1 if fault == "partial" else 0)
        h.send_headers(stream, [(":status", "200"), ("content-type", "application/grpc")])
        h.send_data(stream, b"\0" + len(reply).to_bytes(4, "big") + reply)
        h.send_headers(stream, [("grpc-status", "0")], end_stream=True)


BACKENDS = {"otlp_http": HttpBackend, "otlp_grpc": GrpcBackend}
