// The limit for TCP probes: a program that only connects, with one epoll(7) and the socket options of a probe.
//
//     tcp-connects COUNT PORT CONCURRENT
//     tcp-connects COUNT PORT every MILLISECONDS for SECONDS
//
// The targets are the addresses from 127.1.0.1 on. The first form connects to each target once, with CONCURRENT connections at a time. The
// second form connects to each target once in MILLISECONDS, evenly spread. Both print the nanoseconds from the first connection to the last
// result, the nanoseconds of processor time, and the number of connections that succeeded.
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static int poller;
static long count, running, succeeded;
static uint16_t port;

static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static int fail(const char *what) {
    fprintf(stderr, "tcp-connects: %s: %s\n", what, strerror(errno));
    exit(71);
}

static void begin(long number) {
    int client = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), no = 0, yes = 1;
    if (client < 0) fail("socket");
    struct linger linger = {1, 0};
    setsockopt(client, IPPROTO_TCP, TCP_QUICKACK, &no, sizeof no);
    setsockopt(client, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    setsockopt(client, IPPROTO_IP, IP_RECVERR, &yes, sizeof yes);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    address.sin_addr.s_addr = htonl(0x7f010001u + (uint32_t)(number % count));
    if (connect(client, (struct sockaddr *)&address, sizeof address) != 0 && errno != EINPROGRESS) fail("connect");
    struct epoll_event event = {.events = EPOLLOUT, .data.fd = client};
    if (epoll_ctl(poller, EPOLL_CTL_ADD, client, &event) != 0) fail("epoll_ctl");
    running++;
}

static void end(int client) {
    int error = 0;
    struct tcp_info info;
    socklen_t size = sizeof error, infoSize = sizeof info;
    getsockopt(client, SOL_SOCKET, SO_ERROR, &error, &size);
    getsockopt(client, IPPROTO_TCP, TCP_INFO, &info, &infoSize);
    if (error == 0) succeeded++;
    epoll_ctl(poller, EPOLL_CTL_DEL, client, NULL);
    close(client);
    running--;
}

static void await(int milliseconds) {
    struct epoll_event events[256];
    int ready = epoll_wait(poller, events, 256, milliseconds);
    for (int index = 0; index < ready; index++) end(events[index].data.fd);
}

int main(int argc, char **argv) {
    int spread = argc == 7 && strcmp(argv[3], "every") == 0 && strcmp(argv[5], "for") == 0;
    if ((argc != 4 && !spread) || (count = atol(argv[1])) < 1 || atoi(argv[2]) < 1 || atol(argv[spread ? 4 : 3]) < 1 ||
        (spread && atol(argv[6]) < 1)) {
        fprintf(stderr, "usage: tcp-connects COUNT PORT CONCURRENT | tcp-connects COUNT PORT every MILLISECONDS for SECONDS\n");
        return 64;
    }
    port = (uint16_t)atoi(argv[2]);
    poller = epoll_create1(EPOLL_CLOEXEC);
    if (poller < 0) fail("epoll_create1");
    int64_t start = now();
    long begun = 0;
    if (spread) {
        int64_t interval = atol(argv[4]) * 1000000, length = atol(argv[6]) * 1000000000;
        for (int64_t time = start; time - start < length; time = now()) {
            for (long due = (long)((time - start) * count / interval); begun < due; begun++) begin(begun);
            int64_t next = start + (begun + 1) * interval / count - now();
            await(next < 0 ? 0 : (int)(next / 1000000) + 1);
        }
    } else {
        long concurrent = atol(argv[3]);
        while (begun < count || running > 0) {
            while (begun < count && running < concurrent) begin(begun++);
            await(1000);
        }
    }
    int64_t time = now() - start;
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    int64_t processor = (int64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000000 +
                        (int64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000;
    printf("%" PRId64 " %" PRId64 " %ld\n", time, processor, succeeded);
    return succeeded + running < begun;
}
