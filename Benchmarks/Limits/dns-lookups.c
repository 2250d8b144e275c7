// The limit for resolving many names: a program that asks c-ares for A and AAAA of each name, with its own sockets and poll(2).
//
//     dns-lookups COUNT
//
// Asks 127.0.0.1 for n0.example to nCOUNT-1.example, at most 128 names at a time, and prints the nanoseconds from the first question
// to the last answer.
#include <ares.h>
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static ares_channel channel;
static long count, asked, open_questions, failures;

static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static void answered(void *argument, int status, int timeouts, unsigned char *bytes, int length) {
    (void)argument, (void)timeouts, (void)bytes, (void)length;
    open_questions--;
    if (status != ARES_SUCCESS && status != ARES_ENODATA) failures++;
}

static void ask(void) {
    while (asked < count && open_questions < 256) {
        char name[64];
        snprintf(name, sizeof name, "n%ld.example", asked++);
        open_questions += 2;
        ares_query(channel, name, 1, 1, answered, NULL);
        ares_query(channel, name, 1, 28, answered, NULL);
    }
}

int main(int argc, char **argv) {
    if (argc != 2 || (count = atol(argv[1])) < 1) {
        fprintf(stderr, "usage: dns-lookups COUNT\n");
        return 64;
    }
    struct in_addr server = {htonl(INADDR_LOOPBACK)};
    struct ares_options options = {.servers = &server, .nservers = 1, .socket_receive_buffer_size = 1 << 20};
    if (ares_init_options(&channel, &options, ARES_OPT_SERVERS | ARES_OPT_SOCK_RCVBUF) != ARES_SUCCESS) return 71;
    int64_t start = now();
    for (ask(); open_questions > 0; ask()) {
        ares_socket_t sockets[ARES_GETSOCK_MAXNUM];
        int bits = ares_getsock(channel, sockets, ARES_GETSOCK_MAXNUM);
        struct pollfd polled = {ARES_GETSOCK_READABLE(bits, 0) ? sockets[0] : -1, POLLIN, 0};
        int ready = poll(&polled, 1, 1000);
        ares_process_fd(channel, ready > 0 ? polled.fd : ARES_SOCKET_BAD, ARES_SOCKET_BAD);
    }
    printf("%" PRId64 "\n", now() - start);
    if (failures > 0) fprintf(stderr, "dns-lookups: %ld answers are missing\n", failures);
    ares_destroy(channel);
    return failures > 0;
}
