// The limit for resuming when a network is back: a program that connects as soon as the kernel announces that an interface has a
// carrier.
//
//     link-connect IFINDEX ADDRESS PORT
//
// Joins RTNLGRP_LINK in the current network namespace and prints "ready". Each time the interface gets IFF_RUNNING, it connects
// to the IPv4 address and prints two moments of CLOCK_MONOTONIC in nanoseconds: when recv(2) returned the message, and when it
// was connected. It prints the line 200 ms later, so that writing takes no time from other measurements. It ends with a signal.
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static int fail(const char *what) {
    fprintf(stderr, "link-connect: %s: %s\n", what, strerror(errno));
    return 71;
}

static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

int main(int argc, char **argv) {
    struct sockaddr_in server = {.sin_family = AF_INET};
    if (argc != 4 || atoi(argv[1]) < 1 || inet_pton(AF_INET, argv[2], &server.sin_addr) != 1 || atoi(argv[3]) < 1) {
        fprintf(stderr, "usage: link-connect IFINDEX ADDRESS PORT\n");
        return 64;
    }
    int index = atoi(argv[1]);
    server.sin_port = htons((uint16_t)atoi(argv[3]));
    static char buffer[65536] __attribute__((aligned(NLMSG_ALIGNTO)));
    struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK};
    int netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (netlink < 0) return fail("socket");
    if (bind(netlink, (struct sockaddr *)&address, sizeof address) != 0) return fail("bind");
    printf("ready\n");
    fflush(stdout);
    // The interface is assumed to run at first, since the program waits until it runs again.
    int runs = 1;
    for (;;) {
        ssize_t length = recv(netlink, buffer, sizeof buffer, 0);
        int64_t notified = now();
        if (length < 0) {
            if (errno == EINTR) continue;
            return fail("recv");
        }
        int comes = 0;
        for (struct nlmsghdr *header = (struct nlmsghdr *)(void *)buffer; NLMSG_OK(header, length);
             header = NLMSG_NEXT(header, length)) {
            if (header->nlmsg_type != RTM_NEWLINK) continue;
            struct ifinfomsg *link = NLMSG_DATA(header);
            if (link->ifi_index != index || link->ifi_family != AF_UNSPEC) continue;
            int run = (link->ifi_flags & IFF_RUNNING) != 0;
            comes |= run && !runs;
            runs = run;
        }
        if (!comes) continue;
        int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (client < 0) return fail("socket");
        if (connect(client, (struct sockaddr *)&server, sizeof server) != 0) return fail("connect");
        int64_t connected = now();
        close(client);
        usleep(200000);
        printf("%" PRId64 " %" PRId64 "\n", notified, connected);
        if (fflush(stdout) != 0) return fail("output");
    }
}
