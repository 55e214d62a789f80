#!/usr/bin/env python3
"""Shows an NBD export as one file, through FUSE, with all requests in parallel.

    fuse-bridge.py SOCKET FILE

SOCKET is the unix socket of `fullstroke serve`; FILE is an existing regular file, which the export
covers until the bridge ends (SIGTERM, Ctrl-C). A loop device with direct I/O above FILE makes a
block device of the export.

nbdfuse carries about one write at a time, because FUSE locks a file for each write, and its ten
threads limit the reads. This bridge answers the open with FOPEN_PARALLEL_DIRECT_WRITES, and has one
loop without threads: each FUSE request becomes one NBD request, and each NBD reply answers its
FUSE request. So the device below sees the queue depth of the kernel.

Needs root (mount) and Linux 6.2 or later. The protocol is that of include/uapi/linux/fuse.h,
version 7.31, and of the NBD project's proto.md.
"""

import argparse
import ctypes
import errno
import os
import selectors
import signal
import socket
import stat
import struct
import sys

# Opcodes of include/uapi/linux/fuse.h.
FORGET, GETATTR, SETATTR, OPEN, READ, WRITE, STATFS, RELEASE = 2, 3, 4, 14, 15, 16, 17, 18
FSYNC, FLUSH, INIT, INTERRUPT, DESTROY, BATCH_FORGET, FALLOCATE = 20, 25, 26, 36, 38, 42, 43
ASYNC_READ, BIG_WRITES, ASYNC_DIO, MAX_PAGES = 1 << 0, 1 << 5, 1 << 15, 1 << 22
FOPEN_DIRECT_IO, FOPEN_NOFLUSH, FOPEN_PARALLEL_DIRECT_WRITES = 1 << 0, 1 << 5, 1 << 6
# Flags of fallocate(2): a loop device frees blocks with the second and zeroes them with the third.
PUNCH_HOLE, ZERO_RANGE = 2, 16
PAGES_MAX = 256
PAGE = 4096

NBD_READ, NBD_WRITE, NBD_DISCONNECT, NBD_FLUSH, NBD_TRIM, NBD_ZEROES = 0, 1, 2, 3, 4, 6

IN_HEADER = struct.Struct("<IIQQIIIHH")
OUT_HEADER = struct.Struct("<IiQ")
REQUEST = struct.Struct(">IHHQQI")
REPLY = struct.Struct(">IIQ")


class Export:
    """The connection to the server."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        magic, option, _ = struct.unpack(">QQH", self.exactly(18))
        if magic != 0x4E42444D41474943 or option != 0x49484156454F5054:
            sys.exit(f"fuse-bridge: {path} does not speak NBD (fixed newstyle)")
        self.socket.sendall(struct.pack(">IQII", 3, option, 1, 0))
        self.size, _ = struct.unpack(">QH", self.exactly(10))
        self.socket.setblocking(False)
        self.received = bytearray()
        self.unsent = bytearray()

    def exactly(self, count):
        found = b""
        while len(found) < count:
            part = self.socket.recv(count - len(found))
            if not part:
                sys.exit("fuse-bridge: the server closed the connection")
            found += part
        return found

    def ask(self, kind, cookie, offset=0, length=0, data=b""):
        self.unsent += REQUEST.pack(0x25609513, 0, kind, cookie, offset, length)
        self.unsent += data
        self.send()

    def send(self):
        try:
            while self.unsent:
                del self.unsent[:self.socket.send(self.unsent)]
        except BlockingIOError:
            pass

    def receive(self):
        """Reads all that has arrived; false at the end of the connection."""
        try:
            while True:
                part = self.socket.recv(1 << 20)
                if not part:
                    return False
                self.received += part
        except BlockingIOError:
            return True


class Bridge:
    """One file over one export."""

    def __init__(self, export, path):
        self.export, self.path = export, path
        self.fuse = os.open("/dev/fuse", os.O_RDWR | os.O_NONBLOCK)
        self.lengths = {}
        libc = ctypes.CDLL(None, use_errno=True)
        options = f"fd={self.fuse},rootmode={stat.S_IFREG | 0o600:o},user_id=0,group_id=0".encode()
        if libc.mount(b"fullstroke", os.fsencode(path), b"fuse", 0, options) != 0:
            sys.exit(f"fuse-bridge: cannot mount on {path}: {os.strerror(ctypes.get_errno())}")
        self.umount = lambda: libc.umount2(os.fsencode(path), 2)

    def run(self):
        selector = selectors.DefaultSelector()
        selector.register(self.fuse, selectors.EVENT_READ)
        watched = selectors.EVENT_READ
        selector.register(self.export.socket, watched)
        alive = True
        while alive:
            for key, events in selector.select():
                if key.fd == self.fuse:
                    alive &= self.take_requests()
                else:
                    self.export.send()
                    if events & selectors.EVENT_READ:
                        alive &= self.export.receive()
                        self.pass_replies()
            wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if self.export.unsent else 0)
            if wanted != watched:
                selector.modify(self.export.socket, wanted)
                watched = wanted

    def take_requests(self):
        while True:
            try:
                data = os.read(self.fuse, PAGES_MAX * PAGE + 4096)
            except BlockingIOError:
                return True
            except OSError as error:
                if error.errno == errno.ENOENT:
                    continue
                # ENODEV: the mount is gone.
                return False
            _, opcode, unique, *_ = IN_HEADER.unpack_from(data)
            self.take(opcode, unique, memoryview(data)[IN_HEADER.size:])

    def take(self, opcode, unique, body):
        if opcode == READ:
            _, offset, size = struct.unpack_from("<QQI", body)
            self.begin(NBD_READ, unique, offset, min(size, self.export.size - offset))
        elif opcode == WRITE:
            _, offset, size = struct.unpack_from("<QQI", body)
            self.begin(NBD_WRITE, unique, offset, size, body[40:40 + size])
        elif opcode == FSYNC:
            self.begin(NBD_FLUSH, unique, 0, 0)
        elif opcode == FALLOCATE:
            _, offset, length, mode = struct.unpack_from("<QQQI", body)
            kind = NBD_TRIM if mode & PUNCH_HOLE else NBD_ZEROES
            if mode & (PUNCH_HOLE | ZERO_RANGE) and length < 1 << 32:
                self.begin(kind, unique, offset, length)
            else:
                self.answer(unique, error=errno.EOPNOTSUPP)
        elif opcode == INIT:
            flags = ASYNC_READ | BIG_WRITES | ASYNC_DIO | MAX_PAGES
            # 1024 requests in the background: the kernel's own limit of 12 would hide its depth.
            self.answer(unique, struct.pack("<IIIIHHIIHHII24x", 7, 31, 0, flags, 1024, 1024,
                                            PAGES_MAX * PAGE, 1, PAGES_MAX, 0, 0, 0))
        elif opcode in (GETATTR, SETATTR):
            attributes = struct.pack("<QQQQQQIIIIIIIIII", 1, self.export.size,
                                     self.export.size // 512, 0, 0, 0, 0, 0, 0,
                                     stat.S_IFREG | 0o600, 1, 0, 0, 0, PAGE, 0)
            self.answer(unique, struct.pack("<QII", 3600, 0, 0) + attributes)
        elif opcode == OPEN:
            flags = FOPEN_DIRECT_IO | FOPEN_NOFLUSH | FOPEN_PARALLEL_DIRECT_WRITES
            self.answer(unique, struct.pack("<QIi", 1, flags, 0))
        elif opcode == STATFS:
            self.answer(unique, struct.pack("<QQQQQIIII24x", self.export.size // PAGE, 0, 0, 1, 0,
                                            PAGE, 255, PAGE, 0))
        elif opcode in (RELEASE, FLUSH, DESTROY):
            self.answer(unique)
        elif opcode not in (FORGET, BATCH_FORGET, INTERRUPT):
            self.answer(unique, error=errno.ENOSYS)

    def begin(self, kind, unique, offset, length, data=b""):
        self.lengths[unique] = kind, length
        self.export.ask(kind, unique, offset, length, data)

    def pass_replies(self):
        received, at = self.export.received, 0
        while len(received) - at >= REPLY.size:
            _, error, unique = REPLY.unpack_from(received, at)
            kind, length = self.lengths[unique]
            carried = length if kind == NBD_READ and not error else 0
            if len(received) - at - REPLY.size < carried:
                break
            at += REPLY.size
            content = struct.pack("<II", length, 0) if kind == NBD_WRITE else received[at:at + carried]
            at += carried
            del self.lengths[unique]
            self.answer(unique, b"" if error else content, error=errno.EIO if error else 0)
        del received[:at]

    def answer(self, unique, content=b"", error=0):
        header = OUT_HEADER.pack(OUT_HEADER.size + len(content), -error, unique)
        try:
            os.writev(self.fuse, [header, content] if content else [header])
        except OSError as failure:
            # ENOENT: the request was interrupted.
            if failure.errno not in (errno.ENOENT, errno.ENODEV):
                raise


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("socket")
    parser.add_argument("file")
    arguments = parser.parse_args()
    bridge = Bridge(Export(arguments.socket), arguments.file)

    def end(*_):
        bridge.umount()

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(40))
    except OSError:
        pass
    bridge.run()


if __name__ == "__main__":
    main()
