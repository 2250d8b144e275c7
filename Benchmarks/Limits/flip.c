// The source of the measured kernel events: flips an interface's administrative state through rtnetlink.
//
//     flip IFINDEX COUNT [PAUSE_NANOSECONDS]
//
// Flips IFF_UP of the interface of the current network namespace COUNT times with RTM_SETLINK, and waits for the kernel's
// acknowledgment of each. Before each flip it waits for a line on standard input, or for a fixed pause. At the end it prints a
// line for each flip: CLOCK_MONOTONIC in nanoseconds just before the request was sent, and 1 for up or 0 for down. The kernel
// sends the event before the acknowledgment, while it holds its lock for links. So the request is the only moment that is
// the same for all listeners.
#include <errno.h>
#include <inttypes.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

struct record {
    int64_t nanoseconds;
    int up;
};

static int fail(const char *what) {
    fprintf(stderr, "flip: %s: %s\n", what, strerror(errno));
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

// Waits for the acknowledgment of one request. Returns 0, or -1 with errno.
static int acknowledged(int netlink, uint32_t sequence) {
    static char buffer[8192] __attribute__((aligned(NLMSG_ALIGNTO)));
    for (;;) {
        ssize_t length = recv(netlink, buffer, sizeof buffer, 0);
        if (length < 0 && errno == EINTR) continue;
        if (length < 0) return -1;
        for (struct nlmsghdr *header = (struct nlmsghdr *)(void *)buffer; NLMSG_OK(header, length);
             header = NLMSG_NEXT(header, length)) {
            if (header->nlmsg_type != NLMSG_ERROR || header->nlmsg_seq != sequence) continue;
            errno = -((struct nlmsgerr *)NLMSG_DATA(header))->error;
            return errno == 0 ? 0 : -1;
        }
    }
}

// Waits for the moment of the next flip. Returns 0 at the end of the input.
static int await_next(int64_t pause) {
    if (pause < 0) {
        int character;
        while ((character = getchar()) != EOF)
            if (character == '\n') return 1;
        return 0;
    }
    struct timespec left = {pause / 1000000000, pause % 1000000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) == EINTR) {}
    return 1;
}

int main(int argc, char **argv) {
    int index = argc > 1 ? atoi(argv[1]) : 0;
    long wanted = argc > 2 ? atol(argv[2]) : 0;
    int64_t pause = argc > 3 ? atoll(argv[3]) : -1;
    if (argc < 3 || argc > 4 || index < 1 || wanted < 1 || wanted > 10000000 || (argc == 4 && pause < 0)) {
        fprintf(stderr, "usage: flip IFINDEX COUNT [PAUSE_NANOSECONDS]\n");
        return 64;
    }
    struct record *records = malloc((size_t)wanted * sizeof *records);
    if (!records) return fail("memory");
    memset(records, 0, (size_t)wanted * sizeof *records);
    int netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (netlink < 0) return fail("socket");
    int up = is_up((unsigned int)index);
    if (up < 0) return fail("interface");

    long count = 0;
    while (count < wanted && await_next(pause)) {
        up = !up;
        struct {
            struct nlmsghdr header;
            struct ifinfomsg link;
        } request = {
            .header = {sizeof request, RTM_SETLINK, NLM_F_REQUEST | NLM_F_ACK, (uint32_t)count + 1, 0},
            .link = {.ifi_family = AF_UNSPEC, .ifi_index = index, .ifi_flags = up ? IFF_UP : 0, .ifi_change = IFF_UP},
        };
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        records[count] = (struct record){(int64_t)now.tv_sec * 1000000000 + now.tv_nsec, up};
        if (send(netlink, &request, sizeof request, 0) != (ssize_t)sizeof request) return fail("send");
        if (acknowledged(netlink, (uint32_t)count + 1) != 0) return fail("RTM_SETLINK");
        count++;
    }
    for (long i = 0; i < count; i++) printf("%" PRId64 " %d\n", records[i].nanoseconds, records[i].up);
    return fflush(stdout) == 0 ? 0 : fail("output");
}
