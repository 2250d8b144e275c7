// The limit for the delay of a change of the path: the least that a path monitor must do, in C.
//
//     netlink-reader IFINDEX
//
// Waits in epoll(7) for rtnetlink's events of links, addresses and routes, reads all that are queued, asks the kernel for a route
// in each address family, and wakes a second thread, which takes the time first. The path is lost when the link is down or neither
// family has a route. The queries have the destinations 198.51.100.1 and 2001:db8::1. Prints "ready"; SIGTERM makes it print its
// records as netlink-latency does.
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { capacity = 1 << 20 };

struct record {
    int64_t nanoseconds;
    int up;
};

struct query {
    struct nlmsghdr header;
    struct rtmsg route;
    struct rtattr attribute;
    unsigned char destination[16];
};

static struct record records[capacity];
static int count;
static int wake;
static atomic_int published;
static char buffer[65536] __attribute__((aligned(NLMSG_ALIGNTO)));

static int fail(const char *what) {
    fprintf(stderr, "netlink-reader: %s: %s\n", what, strerror(errno));
    return 71;
}

static int open_netlink(unsigned int groups) {
    struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = groups};
    int size = 1 << 20;
    int descriptor = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
    if (descriptor < 0) return -1;
    setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
    return bind(descriptor, (struct sockaddr *)&address, sizeof address) == 0 ? descriptor : -1;
}

// Asks for a route in each family with one datagram. Returns whether there is one.
static int has_route(int queries) {
    static uint32_t sequence;
    struct query both[2];
    memset(both, 0, sizeof both);
    size_t length = 0;
    char datagram[sizeof both];
    for (int family = 0; family < 2; family++) {
        struct query *query = &both[family];
        size_t bytes = family == 0 ? 4 : 16;
        query->header.nlmsg_type = RTM_GETROUTE;
        query->header.nlmsg_flags = NLM_F_REQUEST;
        query->header.nlmsg_seq = ++sequence;
        query->header.nlmsg_len = (uint32_t)(NLMSG_LENGTH(sizeof query->route) + RTA_LENGTH(bytes));
        query->route.rtm_family = family == 0 ? AF_INET : AF_INET6;
        query->route.rtm_dst_len = family == 0 ? 32 : 128;
        query->attribute.rta_type = RTA_DST;
        query->attribute.rta_len = (unsigned short)RTA_LENGTH(bytes);
        inet_pton(query->route.rtm_family, family == 0 ? "198.51.100.1" : "2001:db8::1", query->destination);
        memcpy(datagram + length, query, query->header.nlmsg_len);
        length += NLMSG_ALIGN(query->header.nlmsg_len);
    }
    if (send(queries, datagram, length, 0) < 0) return 0;
    int found = 0;
    for (int answers = 0; answers < 2; answers++) {
        ssize_t received = recv(queries, buffer, sizeof buffer, 0);
        struct nlmsghdr *header = (struct nlmsghdr *)(void *)buffer;
        if (received < 0) break;
        if (header->nlmsg_type == RTM_NEWROUTE) found = 1;
    }
    return found;
}

static void *deliver(void *unused) {
    (void)unused;
    for (;;) {
        uint64_t number;
        if (read(wake, &number, sizeof number) < 0) return NULL;
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (count >= capacity) continue;
        records[count] = (struct record){(int64_t)now.tv_sec * 1000000000 + now.tv_nsec, atomic_load(&published)};
        count++;
    }
}

// Reads all queued events. Returns the state of the link after them; `up` if they have none of it.
static int drain(int events, int index, int up) {
    for (;;) {
        ssize_t length = recv(events, buffer, sizeof buffer, 0);
        if (length < 0) return up;
        for (struct nlmsghdr *header = (struct nlmsghdr *)(void *)buffer; NLMSG_OK(header, length); header = NLMSG_NEXT(header, length)) {
            struct ifinfomsg *link = NLMSG_DATA(header);
            if (header->nlmsg_type == RTM_NEWLINK && link->ifi_index == index && link->ifi_family == AF_UNSPEC)
                up = (link->ifi_flags & IFF_UP) != 0;
        }
    }
}

int main(int argc, char **argv) {
    if (argc != 2 || atoi(argv[1]) < 1) {
        fprintf(stderr, "usage: netlink-reader IFINDEX\n");
        return 64;
    }
    int index = atoi(argv[1]);
    int events = open_netlink(RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR | RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_ROUTE);
    int queries = open_netlink(0);
    if (events < 0 || queries < 0) return fail("socket");
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    int stop = signalfd(-1, &signals, SFD_CLOEXEC);
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    wake = eventfd(0, EFD_CLOEXEC);
    if (stop < 0 || epoll < 0 || wake < 0) return fail("descriptors");
    struct epoll_event interest = {.events = EPOLLIN, .data.fd = events};
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, events, &interest) != 0) return fail("epoll_ctl");
    interest.data.fd = stop;
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, stop, &interest) != 0) return fail("epoll_ctl");
    // Touch all pages now: touching one first while measuring would cost a page fault.
    memset(records, 0, sizeof records);
    pthread_t thread;
    if (pthread_create(&thread, NULL, deliver, NULL) != 0) return fail("thread");
    int up = has_route(queries);
    atomic_store(&published, up);
    printf("ready\n");
    fflush(stdout);
    for (;;) {
        struct epoll_event ready;
        if (epoll_wait(epoll, &ready, 1, -1) < 1) continue;
        if (ready.data.fd == stop) break;
        up = drain(events, index, up);
        int satisfied = has_route(queries) && up;
        if (satisfied == atomic_load(&published)) continue;
        atomic_store(&published, satisfied);
        uint64_t one = 1;
        if (write(wake, &one, sizeof one) < 0) return fail("write");
    }
    for (int i = 0; i < count; i++) printf("%" PRId64 " %d\n", records[i].nanoseconds, records[i].up);
    return fflush(stdout) == 0 ? 0 : fail("output");
}
