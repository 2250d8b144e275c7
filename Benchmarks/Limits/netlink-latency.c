// The limit for the delay of a kernel event: a program that only waits for rtnetlink in recv(2).
//
//     netlink-latency IFINDEX
//
// Joins RTNLGRP_LINK in the current network namespace and prints "ready". For each RTM_NEWLINK of the interface whose IFF_UP
// differs from the one before, it takes the time first thing after recv(2). SIGTERM makes it print its records, one line each:
// CLOCK_MONOTONIC in nanoseconds, and 1 for up or 0 for down. It writes nothing while it measures, since each write would wake
// the reader and take time from the measurement.
#include <errno.h>
#include <inttypes.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { capacity = 1 << 20 };

struct record {
    int64_t nanoseconds;
    int up;
};

// Static, so that the signal handler finds the records and their count.
static struct record records[capacity];
static volatile sig_atomic_t count;
static sigjmp_buf end;

static void stop(int signal) {
    (void)signal;
    siglongjmp(end, 1);
}

static int fail(const char *what) {
    fprintf(stderr, "netlink-latency: %s: %s\n", what, strerror(errno));
    return 71;
}

// Returns whether the interface is up, or -1.
static int is_up(unsigned int index) {
    struct ifreq request = {0};
    int socket_ = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (socket_ < 0) return -1;
    int known = if_indextoname(index, request.ifr_name) && ioctl(socket_, SIOCGIFFLAGS, &request) == 0;
    close(socket_);
    return known ? (request.ifr_flags & IFF_UP) != 0 : -1;
}

int main(int argc, char **argv) {
    if (argc != 2 || atoi(argv[1]) < 1) {
        fprintf(stderr, "usage: netlink-latency IFINDEX\n");
        return 64;
    }
    int index = atoi(argv[1]);
    static char buffer[65536] __attribute__((aligned(NLMSG_ALIGNTO)));
    int size = 1 << 20;
    struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK};
    int netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (netlink < 0) return fail("socket");
    setsockopt(netlink, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
    if (bind(netlink, (struct sockaddr *)&address, sizeof address) != 0) return fail("bind");
    // Volatile, because it changes after sigsetjmp.
    volatile int up = is_up((unsigned int)index);
    if (up < 0) return fail("interface");
    // Touch all pages now: touching one first while measuring would cost a page fault.
    memset(records, 0, sizeof records);

    if (sigsetjmp(end, 1) == 0) {
        struct sigaction action = {.sa_handler = stop};
        sigaction(SIGTERM, &action, NULL);
        sigaction(SIGINT, &action, NULL);
        printf("ready\n");
        fflush(stdout);
        while (count < capacity) {
            ssize_t length = recv(netlink, buffer, sizeof buffer, 0);
            struct timespec now;
            clock_gettime(CLOCK_MONOTONIC, &now);
            if (length < 0) {
                if (errno == EINTR) continue;
                return fail("recv");
            }
            for (struct nlmsghdr *header = (struct nlmsghdr *)(void *)buffer; NLMSG_OK(header, length);
                 header = NLMSG_NEXT(header, length)) {
                if (header->nlmsg_type != RTM_NEWLINK) continue;
                struct ifinfomsg *link = NLMSG_DATA(header);
                int new_up = (link->ifi_flags & IFF_UP) != 0;
                // A bridge also sends messages about its ports, with AF_BRIDGE.
                if (link->ifi_index != index || link->ifi_family != AF_UNSPEC || new_up == up || count >= capacity) continue;
                up = new_up;
                records[count] = (struct record){(int64_t)now.tv_sec * 1000000000 + now.tv_nsec, new_up};
                count++;
            }
        }
    }
    for (sig_atomic_t i = 0; i < count; i++) printf("%" PRId64 " %d\n", records[i].nanoseconds, records[i].up);
    return fflush(stdout) == 0 ? 0 : fail("output");
}
