/* Sends requests to a block device in the guest of tools/kernel-lab.py.
 *
 *   requests DEVICE single r|w|s OFFSET BYTES
 *     One direct read or write; s is a write with O_DSYNC.
 *   requests DEVICE load r|w|m|s seq|rand BYTES DEPTH COUNT OFFSET SPAN SEED
 *     Direct requests through libaio, DEPTH at a time, one io_submit each; m alternates reads and writes
 *     at random. Random offsets are OFFSET + BYTES * (splitmix64 modulo SPAN / BYTES), so that a
 *     simulation can make the same requests.
 *   requests DEVICE stream BYTES COUNT OFFSET
 *     Sequential writes through the page cache, and fsync.
 *
 * Marks in the kernel's trace begin and end the run. `requests first DEVICE ...` has the processor
 * before all other processes and threads, as if the process had a processor of its own. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int trace;

static void mark(const char *text) {
    if (write(trace, text, strlen(text)) < 0) {
        perror("trace_marker");
        exit(1);
    }
}

static void fail(const char *text) {
    perror(text);
    exit(1);
}

static uint64_t state;

static uint64_t random_number(void) {
    uint64_t z = (state += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

/* Makes the contents of each 4 KiB different, so that checksums differ, and pointers do not compress. */
static void stamp(char *memory, size_t bytes) {
    static uint64_t number;
    for (size_t at = 0; at < bytes; at += 4096) {
        uint64_t z = ++number * 0x9e3779b97f4a7c15ull;
        memcpy(memory + at, &z, sizeof z);
    }
}

static void *buffer(size_t bytes) {
    void *memory;
    if (posix_memalign(&memory, 4096, bytes)) fail("memory");
    memset(memory, 0x5a, bytes);
    return memory;
}

static int opened(const char *device, int flags) {
    int file = open(device, O_RDWR | flags);
    if (file < 0) fail(device);
    return file;
}

static void single(const char *device, char kind, off_t offset, size_t bytes) {
    int file = opened(device, O_DIRECT | (kind == 's' ? O_DSYNC : 0));
    void *memory = buffer(bytes);
    mark("BEGIN");
    ssize_t done = kind == 'r' ? pread(file, memory, bytes, offset) : pwrite(file, memory, bytes, offset);
    mark("END");
    if (done != (ssize_t)bytes) fail("request");
    /* Requests of the array that follow the answer belong to the request, too. */
    usleep(150000);
}

static void load(const char *device, char **argument) {
    char kind = argument[0][0];
    int at_random = argument[1][0] == 'r';
    size_t bytes = strtoul(argument[2], 0, 0);
    long depth = atol(argument[3]), count = atol(argument[4]);
    uint64_t offset = strtoull(argument[5], 0, 0), span = strtoull(argument[6], 0, 0);
    state = strtoull(argument[7], 0, 0);
    int file = opened(device, O_DIRECT | (kind == 's' ? O_DSYNC : 0));
    void *memory = buffer(bytes);
    aio_context_t context = 0;
    if (syscall(SYS_io_setup, depth, &context)) fail("io_setup");
    struct iocb *blocks = calloc(depth, sizeof *blocks);
    struct io_event *events = calloc(depth, sizeof *events);
    long *unused = calloc(depth, sizeof *unused), left = depth, sent = 0, done = 0;
    for (long i = 0; i < depth; i++) unused[i] = depth - 1 - i;
    mark("BEGIN");
    while (done < count) {
        while (sent < count && left > 0) {
            long slot = unused[--left];
            struct iocb *block = &blocks[slot];
            uint64_t index = at_random ? random_number() % (span / bytes) : (uint64_t)sent;
            int writes = kind == 'w' || kind == 's' || (kind == 'm' && (random_number() & 1));
            if (writes) stamp(memory, bytes);
            *block = (struct iocb){.aio_data = slot, .aio_fildes = file,
                                   .aio_lio_opcode = writes ? IOCB_CMD_PWRITE : IOCB_CMD_PREAD,
                                   .aio_buf = (uintptr_t)memory, .aio_nbytes = bytes,
                                   .aio_offset = offset + index * bytes};
            if (syscall(SYS_io_submit, context, 1, &block) != 1) fail("io_submit");
            sent++;
        }
        long ended = syscall(SYS_io_getevents, context, 1, depth, events, 0);
        if (ended < 1) fail("io_getevents");
        for (long i = 0; i < ended; i++) {
            if (events[i].res != (long long)bytes) fail("request");
            unused[left++] = events[i].data;
        }
        done += ended;
    }
    mark("END");
    usleep(200000);
}

static void stream(const char *device, size_t bytes, long count, off_t offset) {
    int file = opened(device, 0);
    void *memory = buffer(bytes);
    mark("BEGIN");
    for (long i = 0; i < count; i++)
        if (pwrite(file, memory, bytes, offset + i * (off_t)bytes) != (ssize_t)bytes) fail("write");
    if (fsync(file)) fail("fsync");
    mark("END");
    usleep(200000);
}

int main(int count, char **argument) {
    if (count > 1 && !strcmp(argument[1], "first")) {
        struct sched_param priority = {.sched_priority = 1};
        if (sched_setscheduler(0, SCHED_FIFO, &priority)) fail("sched_setscheduler");
        /* Best effort, level 4. Otherwise mq-deadline would hold back all I/O of md's threads. */
        if (syscall(SYS_ioprio_set, 1, 0, 2 << 13 | 4)) fail("ioprio_set");
        count--, argument++;
    }
    trace = open("/sys/kernel/tracing/trace_marker", O_WRONLY);
    if (count == 6 && !strcmp(argument[2], "single"))
        single(argument[1], argument[3][0], atoll(argument[4]), atol(argument[5]));
    else if (count == 11 && !strcmp(argument[2], "load"))
        load(argument[1], argument + 3);
    else if (count == 6 && !strcmp(argument[2], "stream"))
        stream(argument[1], atol(argument[3]), atol(argument[4]), atoll(argument[5]));
    else {
        fprintf(stderr, "requests: wrong arguments\n");
        return 2;
    }
    return 0;
}
