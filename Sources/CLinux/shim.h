// Linux interfaces that Swift's Glibc module lacks: epoll, eventfd, timerfd, inotify, namespaces, rtnetlink, ethtool, nl80211,
// socket error-queue definitions, and malloc_trim(3). Each inline function below replaces a macro, a variadic function or a
// flexible structure that Swift cannot import.
#ifndef NETWATCH_CLINUX_SHIM_H
#define NETWATCH_CLINUX_SHIM_H

// _GNU_SOURCE stays undefined: it changes structures (fd_set) that Swift's Glibc module imports without it, and the two modules
// would disagree. Functions that need it are declared below. For the same reason netinet/tcp.h replaces linux/tcp.h, and
// net/if.h comes before linux/if.h.
#include <errno.h>
#include <fcntl.h>
#include <iconv.h>
#include <locale.h>
#include <malloc.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <linux/errqueue.h>
#include <linux/ethtool.h>
#include <linux/fib_rules.h>
#include <linux/filter.h>
#include <linux/genetlink.h>
#include <linux/if.h>
#include <linux/if_addr.h>
#include <linux/if_arp.h>
#include <linux/if_link.h>
#include <linux/if_tun.h>
#include <linux/magic.h>
#include <linux/neighbour.h>
#include <linux/netconf.h>
#include <linux/netlink.h>
#include <linux/nexthop.h>
#include <linux/nl80211.h>
#include <linux/rtnetlink.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>

// The state of a TCP connection by TCP_INFO (tcp(7)). glibc's structure ends before some members of linux/tcp.h: those that the kernel does not know
// are 0, and bytes_acknowledged is UINT64_MAX (before Linux 4.1).
struct netwatch_tcp_state {
    uint32_t unacknowledged;      // segments
    uint32_t since_sent;          // milliseconds since the last data were sent for the first time
    uint32_t round_trip;          // microseconds
    uint32_t retransmissions;     // segments, the SYN included
    uint32_t duplicates;          // segments that were sent again in vain, as the peer has reported (DSACK, RFC 2883), since Linux 4.20
    uint32_t out_of_order;        // received segments behind a gap, since Linux 5.4
    uint64_t bytes_acknowledged;  // the SYN counts as one
    uint64_t bytes_received;
};

// Returns 0, or -1 with errno.
static inline int netwatch_tcp_state_of(int descriptor, struct netwatch_tcp_state *state) {
    unsigned char info[256] = {0};
    socklen_t size = sizeof info;
    memset(state, 0, sizeof *state);
    state->bytes_acknowledged = UINT64_MAX;
    if (getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, info, &size) != 0) return -1;
    memcpy(&state->unacknowledged, info + 24, 4);
    memcpy(&state->since_sent, info + 44, 4);
    memcpy(&state->round_trip, info + 68, 4);
    memcpy(&state->retransmissions, info + 100, 4);
    if (size >= 136) {
        memcpy(&state->bytes_acknowledged, info + 120, 8);
        memcpy(&state->bytes_received, info + 128, 8);
    }
    if (size >= 220) memcpy(&state->duplicates, info + 216, 4);
    if (size >= 228) memcpy(&state->out_of_order, info + 224, 4);
    return 0;
}

// EPOLL_EVENTS are enumerators with casts in C, which Swift does not import as usable constants.
static const uint32_t netwatch_EPOLLIN = EPOLLIN;
static const uint32_t netwatch_EPOLLOUT = EPOLLOUT;
static const uint32_t netwatch_EPOLLERR = EPOLLERR;
static const uint32_t netwatch_EPOLLHUP = EPOLLHUP;
static const uint32_t netwatch_EPOLLRDHUP = EPOLLRDHUP;
static const uint32_t netwatch_EPOLLONESHOT = EPOLLONESHOT;
static const int32_t netwatch_EPOLL_CLOEXEC = EPOLL_CLOEXEC;
static const int32_t netwatch_EFD_FLAGS = EFD_CLOEXEC | EFD_NONBLOCK;
static const int32_t netwatch_EFD_NONBLOCK = EFD_NONBLOCK;
static const int32_t netwatch_TFD_FLAGS = TFD_CLOEXEC | TFD_NONBLOCK;
static const int32_t netwatch_IN_FLAGS = IN_CLOEXEC | IN_NONBLOCK;

// struct epoll_event is packed on x86-64; its union is filled here so that no Swift code depends on the layout.
static inline int netwatch_epoll_ctl(int epoll, int operation, int descriptor, uint32_t events, uint64_t token) {
    struct epoll_event event;
    memset(&event, 0, sizeof event);
    event.events = events;
    event.data.u64 = token;
    return epoll_ctl(epoll, operation, descriptor, &event);
}

// The maximum number of descriptors that one wait reports.
enum { netwatch_epoll_batch = 256 };

// Waits and unpacks into two plain arrays with room for netwatch_epoll_batch descriptors, for the same reason.
static inline int netwatch_epoll_wait(int epoll, uint32_t *events, uint64_t *tokens, int milliseconds) {
    struct epoll_event ready[netwatch_epoll_batch];
    int count = epoll_wait(epoll, ready, netwatch_epoll_batch, milliseconds);
    for (int i = 0; i < count; i++) {
        events[i] = ready[i].events;
        tokens[i] = ready[i].data.u64;
    }
    return count;
}

// A timer that fires only when the wall clock is set, which the kernel also does on resume from suspend
// (timerfd_create(2), TFD_TIMER_CANCEL_ON_SET). Its expiry in 2038 is never reached.
static inline int netwatch_clock_change_timer(int descriptor) {
    struct itimerspec far_away;
    memset(&far_away, 0, sizeof far_away);
    far_away.it_value.tv_sec = (time_t)0x7fffffff;
    return timerfd_settime(descriptor, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &far_away, NULL);
}

// ioctl(2) is variadic. Reads the name of a device's driver (ETHTOOL_GDRVINFO), which works without privileges and in any network
// namespace, unlike sysfs. Returns 0 or an errno; `driver` and `bus` have room for 32 bytes each.
static inline int netwatch_ethtool_driver(int socket, const char *name, char *driver, char *bus) {
    struct ethtool_drvinfo info;
    struct ifreq request;
    memset(&info, 0, sizeof info);
    memset(&request, 0, sizeof request);
    info.cmd = ETHTOOL_GDRVINFO;
    strncpy(request.ifr_name, name, sizeof request.ifr_name - 1);
    request.ifr_data = (void *)&info;
    if (ioctl(socket, SIOCETHTOOL, &request) != 0) return errno;
    memcpy(driver, info.driver, 32);
    memcpy(bus, info.bus_info, 32);
    driver[31] = bus[31] = 0;
    return 0;
}

// The properties of a device by netdevice(7), for systems without netlink; ioctl(2) is variadic, and struct ifreq contains a
// union.
struct netwatch_interface {
    uint32_t index, flags, mtu;
    uint16_t type;
    int16_t carrier; // 1, 0, or -1 if the driver does not report it
    uint8_t hardware_address[14];
    char driver[32], bus[32]; // empty if there is none
};

// Reads a device by its name, in the namespace that the socket was opened in. Returns 0 or an errno.
static inline int netwatch_read_interface(int socket, const char *name, struct netwatch_interface *result) {
    struct ifreq request;
    struct ethtool_value link;
    memset(result, 0, sizeof *result);
    memset(&request, 0, sizeof request);
    strncpy(request.ifr_name, name, sizeof request.ifr_name - 1);
    if (ioctl(socket, SIOCGIFINDEX, &request) != 0) return errno;
    result->index = (uint32_t)request.ifr_ifindex;
    if (ioctl(socket, SIOCGIFFLAGS, &request) != 0) return errno;
    result->flags = (uint16_t)request.ifr_flags;
    if (ioctl(socket, SIOCGIFMTU, &request) != 0) return errno;
    result->mtu = (uint32_t)request.ifr_mtu;
    if (ioctl(socket, SIOCGIFHWADDR, &request) != 0) return errno;
    result->type = request.ifr_hwaddr.sa_family;
    memcpy(result->hardware_address, request.ifr_hwaddr.sa_data, sizeof result->hardware_address);
    memset(&link, 0, sizeof link);
    link.cmd = ETHTOOL_GLINK;
    request.ifr_data = (void *)&link;
    result->carrier = ioctl(socket, SIOCETHTOOL, &request) == 0 ? link.data != 0 : -1;
    if (netwatch_ethtool_driver(socket, name, result->driver, result->bus) != 0) result->driver[0] = result->bus[0] = 0;
    return 0;
}

// An IPv4 address with its label, as in eth0:1; addresses are in network order.
struct netwatch_ipv4_address {
    char label[16];
    uint32_t address, peer, mask;
};

// Lists the IPv4 addresses of the namespace that the socket was opened in (SIOCGIFCONF). Returns their number, at most `capacity`,
// or -errno.
static inline int netwatch_read_ipv4_addresses(int socket, struct netwatch_ipv4_address *result, int capacity) {
    struct ifconf list;
    int count, error;
    memset(&list, 0, sizeof list);
    list.ifc_len = capacity * (int)sizeof(struct ifreq);
    list.ifc_req = (struct ifreq *)calloc((size_t)capacity, sizeof(struct ifreq));
    if (!list.ifc_req) return -ENOMEM;
    if (ioctl(socket, SIOCGIFCONF, &list) != 0) {
        error = errno;
        free(list.ifc_req);
        return -error;
    }
    count = list.ifc_len / (int)sizeof(struct ifreq);
    for (int i = 0; i < count; i++) {
        // With both the label and the address set, the kernel answers for this address and not for the first one with the label.
        struct ifreq request = list.ifc_req[i];
        struct sockaddr_in found;
        memcpy(&found, &request.ifr_addr, sizeof found);
        memset(&result[i], 0, sizeof result[i]);
        memcpy(result[i].label, request.ifr_name, sizeof result[i].label - 1);
        result[i].address = result[i].peer = found.sin_addr.s_addr;
        if (ioctl(socket, SIOCGIFNETMASK, &request) == 0) {
            memcpy(&found, &request.ifr_netmask, sizeof found);
            result[i].mask = found.sin_addr.s_addr;
        }
        request = list.ifc_req[i];
        if (ioctl(socket, SIOCGIFDSTADDR, &request) == 0) {
            memcpy(&found, &request.ifr_dstaddr, sizeof found);
            result[i].peer = found.sin_addr.s_addr;
        }
    }
    free(list.ifc_req);
    return count;
}

// Blocks netlink for the calling thread and the programs that it starts, as systemd's RestrictAddressFamilies= does:
// socket(AF_NETLINK) fails with EAFNOSUPPORT. With `groups_only`, only netlink's events are blocked: joining a group fails with
// EPERM. For tests; BPF_STMT is a cast. Returns 0 or an errno.
static inline int netwatch_refuse_netlink(int groups_only) {
    struct sock_filter sockets[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_NETLINK, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAFNOSUPPORT),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_filter groups[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_setsockopt, 0, 5),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SOL_NETLINK, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NETLINK_ADD_MEMBERSHIP, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof sockets / sizeof *sockets, sockets};
    if (groups_only) filter = (struct sock_fprog){sizeof groups / sizeof *groups, groups};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno;
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0 ? 0 : errno;
}

// Lets the system call `number` (SYS_socket, SYS_connect) fail for the calling thread and the programs that it starts, as sandboxes do:
// always, or only if its first argument is `first`. For tests. Returns 0 or an errno.
static inline int netwatch_refuse_call(int number, int first, int error) {
    struct sock_filter calls[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)number, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, first < 0 ? offsetof(struct seccomp_data, nr) : offsetof(struct seccomp_data, args[0])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)(first < 0 ? number : first), 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof calls / sizeof *calls, calls};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno;
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0 ? 0 : errno;
}

// A record of the socket's error queue after a failed connect(2): the ICMP message that caused the errno, and its sender.
struct netwatch_socket_error {
    uint32_t error;
    uint8_t origin, type, code, offender_family;
    uint8_t offender[16];
    uint8_t head[8]; // the first bytes of the packet behind its IP header, or zeros
};

// Reads one message with its sender and its control data. Returns its length, or -1 with errno.
static inline ssize_t netwatch_read_message(
    int socket, int flags, struct iovec buffer, struct sockaddr_storage *name, void *control, size_t control_size,
    struct msghdr *message) {
    memset(message, 0, sizeof *message);
    message->msg_name = name;
    message->msg_namelen = sizeof *name;
    message->msg_iov = &buffer;
    message->msg_iovlen = 1;
    message->msg_control = control;
    message->msg_controllen = control_size;
    ssize_t length = recvmsg(socket, message, flags | MSG_DONTWAIT);
    message->msg_iov = NULL;
    return length;
}

// Reads one record of the error queue (ip(7), IP_RECVERR). CMSG_* and SO_EE_OFFENDER are function-like macros.
// Returns 1 when `result` was filled, 0 when the queue is empty, -errno otherwise.
static inline int netwatch_read_error_queue(int socket, struct netwatch_socket_error *result) {
    char data[64], control[512];
    struct sockaddr_storage name;
    struct msghdr message;
    memset(result, 0, sizeof *result);
    ssize_t length = netwatch_read_message(
        socket, MSG_ERRQUEUE, (struct iovec){data, sizeof data}, &name, control, sizeof control, &message);
    if (length < 0) return errno == EAGAIN ? 0 : -errno;
    if (length >= (ssize_t)sizeof result->head) memcpy(result->head, data, sizeof result->head);
    for (struct cmsghdr *header = CMSG_FIRSTHDR(&message); header; header = CMSG_NXTHDR(&message, header)) {
        int is4 = header->cmsg_level == IPPROTO_IP && header->cmsg_type == 11 /* IP_RECVERR */;
        int is6 = header->cmsg_level == IPPROTO_IPV6 && header->cmsg_type == 25 /* IPV6_RECVERR */;
        if (!is4 && !is6) continue;
        struct sock_extended_err extended;
        memcpy(&extended, CMSG_DATA(header), sizeof extended);
        result->error = extended.ee_errno;
        result->origin = extended.ee_origin;
        result->type = extended.ee_type;
        result->code = extended.ee_code;
        struct sockaddr *offender = SO_EE_OFFENDER((struct sock_extended_err *)(void *)CMSG_DATA(header));
        if (offender->sa_family == AF_INET) {
            result->offender_family = AF_INET;
            memcpy(result->offender, &((struct sockaddr_in *)(void *)offender)->sin_addr, 4);
        } else if (offender->sa_family == AF_INET6) {
            result->offender_family = AF_INET6;
            memcpy(result->offender, &((struct sockaddr_in6 *)(void *)offender)->sin6_addr, 16);
        }
        return 1;
    }
    return 0;
}

// A datagram of an IP socket, with its sender and the time at which the kernel received it (SO_TIMESTAMPNS, socket(7)).
struct netwatch_ip_datagram {
    int64_t time; // nanoseconds since 1970, 0 if it is not known
    uint8_t family, sender[16];
};

// Reads one datagram. Returns its length, or -errno.
static inline ssize_t netwatch_receive_ip(int socket, void *buffer, size_t size, struct netwatch_ip_datagram *result) {
    char control[128];
    struct sockaddr_storage name;
    struct msghdr message;
    memset(result, 0, sizeof *result);
    ssize_t length =
        netwatch_read_message(socket, 0, (struct iovec){buffer, size}, &name, control, sizeof control, &message);
    if (length < 0) return -errno;
    if (message.msg_namelen >= sizeof(struct sockaddr_in) && name.ss_family == AF_INET) {
        result->family = AF_INET;
        memcpy(result->sender, &((struct sockaddr_in *)(void *)&name)->sin_addr, 4);
    } else if (message.msg_namelen >= sizeof(struct sockaddr_in6) && name.ss_family == AF_INET6) {
        result->family = AF_INET6;
        memcpy(result->sender, &((struct sockaddr_in6 *)(void *)&name)->sin6_addr, 16);
    }
    for (struct cmsghdr *header = CMSG_FIRSTHDR(&message); header; header = CMSG_NXTHDR(&message, header)) {
        if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != 35 /* SCM_TIMESTAMPNS, of 64 bits on 64-bit machines */) continue;
        if (header->cmsg_len < CMSG_LEN(2 * sizeof(int64_t))) continue;
        int64_t time[2];
        memcpy(time, CMSG_DATA(header), sizeof time);
        result->time = time[0] * 1000000000 + time[1];
    }
    return length;
}

// One datagram of several that were read at once.
struct netwatch_datagram {
    uint32_t length, sender; // the sender's netlink port, 0 for the kernel
    int32_t flags;
};

enum { netwatch_datagrams = 16 };

// Reads at most `count` (up to 16) queued netlink datagrams into `buffer`, `size` bytes for each, in one system call:
// recvmmsg(2) and its structure need _GNU_SOURCE. Returns their number, or -errno; fewer than `count` if no more were queued.
static inline int netwatch_receive(int socket, void *buffer, size_t size, int count, struct netwatch_datagram *result) {
    struct { struct msghdr header; unsigned int length; } messages[netwatch_datagrams];
    struct sockaddr_nl senders[netwatch_datagrams];
    struct iovec vectors[netwatch_datagrams];
    if (count > netwatch_datagrams) count = netwatch_datagrams;
    for (int i = 0; i < count; i++) {
        vectors[i] = (struct iovec){(char *)buffer + (size_t)i * size, size};
        messages[i].header = (struct msghdr){
            .msg_name = &senders[i], .msg_namelen = sizeof senders[i], .msg_iov = &vectors[i], .msg_iovlen = 1};
    }
    long received = syscall(SYS_recvmmsg, socket, messages, count, MSG_DONTWAIT, NULL);
    if (received < 0) return -errno;
    for (int i = 0; i < received; i++)
        result[i] = (struct netwatch_datagram){messages[i].length, senders[i].nl_pid, messages[i].header.msg_flags};
    return (int)received;
}

// Decodes a wait status, whose macros Swift does not import (wait(2)): the exit code, or 128 + the signal.
static inline int netwatch_exit_code(int status) {
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// syscall(2) is variadic, and glibc has pidfd_open(2) only since 2.36. Returns a descriptor that becomes readable when the
// process ends, or -1 with errno.
static inline int netwatch_pidfd_open(int32_t process) { return (int)syscall(SYS_pidfd_open, process, 0); }

// pipe2(2) and memfd_create(2), with close-on-exec. They return 0 or a descriptor, or -1 with errno.
static inline int netwatch_pipe(int ends[2]) { return (int)syscall(SYS_pipe2, ends, O_CLOEXEC); }
static inline int netwatch_memory_file(const char *name) { return (int)syscall(SYS_memfd_create, name, 1U /* MFD_CLOEXEC */); }

// Opens a pseudoterminal without names (ioctl_tty(2), TIOCGPTPEER): its master and its slave, with close-on-exec. Returns 0, or
// -1 with errno.
static inline int netwatch_open_terminal(int ends[2]) {
    int unlocked = 0;
    ends[0] = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (ends[0] < 0) return -1;
    if (ioctl(ends[0], TIOCSPTLCK, &unlocked) == 0) {
        ends[1] = ioctl(ends[0], TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
        if (ends[1] >= 0) return 0;
    }
    close(ends[0]);
    return -1;
}

// Reads a terminal's size (ioctl_tty(2)); ioctl(2) is variadic. If the descriptor is not a terminal, the arguments stay
// unchanged.
static inline void netwatch_terminal_size(int terminal, int32_t *columns, int32_t *rows) {
    struct winsize size;
    if (ioctl(terminal, TIOCGWINSZ, &size) != 0) return;
    *columns = size.ws_col;
    *rows = size.ws_row;
}
static inline int netwatch_set_terminal_size(int terminal, int32_t columns, int32_t rows) {
    struct winsize size = {(unsigned short)rows, (unsigned short)columns, 0, 0};
    return ioctl(terminal, TIOCSWINSZ, &size);
}

// glibc declares these three only under _GNU_SOURCE (2.29, 2.34 and 2.26).
static const int16_t netwatch_POSIX_SPAWN_SETSID = 0x80;
static inline int netwatch_spawn_in_directory(posix_spawn_file_actions_t *actions, const char *directory) {
    extern int posix_spawn_file_actions_addchdir_np(posix_spawn_file_actions_t *, const char *);
    return posix_spawn_file_actions_addchdir_np(actions, directory);
}
static inline int netwatch_spawn_closing_from(posix_spawn_file_actions_t *actions, int first) {
    extern int posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t *, int);
    return posix_spawn_file_actions_addclosefrom_np(actions, first);
}

// ioctl(2) is variadic. Opens a tun or tap device of the calling thread's network namespace (`flags`: IFF_TUN or IFF_TAP, with
// IFF_NO_PI) with the given name and index; `type` is an ARPHRD_* for TUNSETLINK, or -1 for the default. Returns the
// descriptor, or -errno. Without `persistent`, closing the descriptor removes the device.
static inline int netwatch_tun_open(const char *name, int flags, unsigned int index, int type, int persistent) {
    struct ifreq request;
    int error, tun = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
    if (tun < 0) return -errno;
    memset(&request, 0, sizeof request);
    strncpy(request.ifr_name, name, sizeof request.ifr_name - 1);
    request.ifr_flags = (short)flags;
    if (ioctl(tun, TUNSETIFINDEX, &index) == 0 && ioctl(tun, TUNSETIFF, &request) == 0
        && (type < 0 || ioctl(tun, TUNSETLINK, (unsigned long)type) == 0)
        && (!persistent || ioctl(tun, TUNSETPERSIST, 1UL) == 0))
        return tun;
    error = errno;
    close(tun);
    return -error;
}

// Sets or clears the carrier of a tun device (TUNSETCARRIER). Returns 0 or an errno.
static inline int netwatch_tun_carrier(int tun, int carrier) {
    return ioctl(tun, TUNSETCARRIER, &carrier) == 0 ? 0 : errno;
}

// signal(2)'s special handlers are casts.
static inline void netwatch_signal_ignore(int number) { signal(number, SIG_IGN); }
static inline void netwatch_signal_default(int number) { signal(number, SIG_DFL); }

// Namespaces (setns(2), unshare(2)) and the thread's id and name: they need _GNU_SOURCE in glibc's headers, or are variadic.
extern int setns(int descriptor, int kind);
extern int unshare(int flags);
static const int32_t netwatch_CLONE_NEWNET = 0x40000000;
static const int32_t netwatch_CLONE_NEWNS = 0x00020000;
static const int32_t netwatch_CLONE_FS = 0x00000200;
static inline int32_t netwatch_thread_id(void) { return (int32_t)syscall(SYS_gettid); }
static inline void netwatch_set_thread_name(const char *name) { prctl(PR_SET_NAME, name, 0, 0, 0); }

// Whether the signal is ignored, as in a program that nohup(1) started; SIG_IGN is a cast.
static inline int netwatch_signal_is_ignored(int number) {
    struct sigaction action;
    return sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

// Returns a descriptor that becomes readable when a signal of `set` arrives. The signals must be blocked.
static inline int netwatch_signal_descriptor(const sigset_t *set) { return signalfd(-1, set, SFD_CLOEXEC | SFD_NONBLOCK); }

// Reads the next signal of a signal descriptor, or 0 if there is none. Of the 128 bytes of struct signalfd_siginfo only one
// number is needed.
static inline int netwatch_read_signal(int descriptor) {
    struct signalfd_siginfo info;
    return read(descriptor, &info, sizeof info) == (ssize_t)sizeof info ? (int)info.ssi_signo : 0;
}

// Starts `/bin/sh -c command` in its own process group, with `input` as its standard input and `output` as its standard output
// and error. It inherits no other descriptor, and all signals are unblocked and have their default action. Swift's Glibc module
// lacks posix_spawn_file_actions_addclosefrom_np and the attribute types. Returns 0 or an errno.
static inline int netwatch_spawn_shell(pid_t *process, const char *command, char *const *environment, int input, int output) {
    char *const arguments[] = {(char *)"sh", (char *)"-c", (char *)command, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    int failure = posix_spawn_file_actions_init(&actions);
    if (failure) return failure;
    if ((failure = posix_spawnattr_init(&attributes))) {
        posix_spawn_file_actions_destroy(&actions);
        return failure;
    }
    if (!(failure = posix_spawn_file_actions_adddup2(&actions, input, 0)) &&
        !(failure = posix_spawn_file_actions_adddup2(&actions, output, 1)) &&
        !(failure = posix_spawn_file_actions_adddup2(&actions, output, 2)) &&
        !(failure = posix_spawn_file_actions_addclosefrom_np(&actions, 3)) &&
        !(failure = posix_spawnattr_setsigmask(&attributes, &none)) &&
        !(failure = posix_spawnattr_setsigdefault(&attributes, &all)) &&
        !(failure = posix_spawnattr_setpgroup(&attributes, 0)) &&
        !(failure = posix_spawnattr_setflags(
              &attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP)))
        failure = posix_spawn(process, "/bin/sh", &actions, &attributes, arguments, environment);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return failure;
}


// Starts a timer in a year on each of libdispatch's clocks, and one that calls `fired` on an overcommit queue after 1 ms. Swift
// has no name for the clock that counts suspension, nor for queues whose threads' /proc/TID/stat is not read. The assembler
// names avoid a conflict with the declarations of Swift's Dispatch module.
extern void *netwatch_dispatch_queue(intptr_t priority, uintptr_t flags) __asm__("dispatch_get_global_queue");
extern uint64_t netwatch_dispatch_time(uint64_t from, int64_t nanoseconds) __asm__("dispatch_time");
extern void netwatch_dispatch_after(uint64_t when, void *queue, void *context, void (*work)(void *)) __asm__("dispatch_after_f");
static inline void netwatch_ignore_timer(void *context) { (void)context; }
static inline void netwatch_start_dispatch_timers(void *context, void (*fired)(void *)) {
    // DISPATCH_TIME_NOW, DISPATCH_MONOTONICTIME_NOW and DISPATCH_WALLTIME_NOW of libdispatch's time.h and shims/time.h.
    const uint64_t clocks[] = {0, 1ULL << 63, ~1ULL};
    const int64_t year = 365LL * 86400 * 1000000000;
    void *queue = netwatch_dispatch_queue(0, 2 /* DISPATCH_QUEUE_OVERCOMMIT */);
    for (int i = 0; i < 3; i++) netwatch_dispatch_after(netwatch_dispatch_time(clocks[i], year), queue, NULL, netwatch_ignore_timer);
    netwatch_dispatch_after(netwatch_dispatch_time(0, 1000000), queue, context, fired);
}

// libnl's headers define this enumerator too: in a file that imports both modules, a release build finds neither of them
// elsewhere.
static const uint8_t netwatch_IPPROTO_TCP = IPPROTO_TCP;

// Clocks in nanoseconds; CLOCK_BOOTTIME counts time in suspend, CLOCK_MONOTONIC does not.
static inline int64_t netwatch_clock_nanoseconds(int clock) {
    struct timespec now;
    clock_gettime((clockid_t)clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}
static const int32_t netwatch_CLOCK_MONOTONIC = CLOCK_MONOTONIC;
static const int32_t netwatch_CLOCK_REALTIME = CLOCK_REALTIME;
static const int32_t netwatch_CLOCK_BOOTTIME = CLOCK_BOOTTIME;

// fallocate(2), which needs _GNU_SOURCE. With FALLOC_FL_KEEP_SIZE, the file's length does not change. Returns 0 or an errno.
extern int fallocate(int descriptor, int mode, off_t offset, off_t length);
static inline int netwatch_reserve_space(int descriptor, int64_t length) {
    return fallocate(descriptor, 1, 0, (off_t)length) == 0 ? 0 : errno;
}

// getenv(3) that returns NULL in a program with raised privileges; it needs _GNU_SOURCE.
extern char *secure_getenv(const char *name);
static inline const char *netwatch_secure_getenv(const char *name) { return secure_getenv(name); }

#endif
