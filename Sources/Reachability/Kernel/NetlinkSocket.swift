internal import CLibnl
internal import CLinux
internal import Glibc

/// A socket of the rtnetlink or generic netlink protocol. libnl opens it, and this type reads it. libnl's receive loop is not
/// used: it allocates per datagram, decides in callbacks, and reports ENOBUFS as exhausted memory (NLE_NOMEM).
///
/// Only one thread may use the socket: the thread that opened it inside its network namespace.
struct NetlinkSocket: ~Copyable {
    /// The result of one read.
    enum Received {
        /// A datagram from the kernel, valid until the next read.
        case datagram(UnsafeRawBufferPointer)
        /// No datagram is queued.
        case empty
        /// Events were lost: the receive buffer was full, or a datagram was larger than the read buffer.
        case overrun
        /// The read failed.
        case failed(errno: Int32)
    }

    /// The name of the call that joins a group, for errors.
    static let joining = "nl_socket_add_membership"

    private let handle: OpaquePointer
    let descriptor: Int32
    // 64 KiB: the kernel builds dump datagrams of up to 32 KiB, and larger ones only for larger reads.
    private static let datagramCapacity = 65_536
    /// The maximum number of datagrams in one read. Each has its own part of the buffer, of which only touched pages use memory.
    private let batch: Int
    private let buffer: UnsafeMutableRawBufferPointer
    private let headers: UnsafeMutablePointer<netwatch_datagram>

    /// Opens and binds a socket.
    ///
    /// - Parameters:
    ///   - protocolNumber: NETLINK_ROUTE or NETLINK_GENERIC.
    ///   - groups: the multicast groups to join.
    ///   - receiveBuffer: the size of the kernel's receive queue in bytes; `nil` for libnl's 32 KiB.
    ///   - batch: the maximum number of datagrams in one read, up to 16.
    /// - Throws: `NetlinkError` with the call that the system refused.
    init(
        protocolNumber: Int32 = NETLINK_ROUTE, groups: [rtnetlink_groups] = [], receiveBuffer: Int32? = nil, batch: Int = 1
    ) throws(NetlinkError) {
        guard let handle = nl_socket_alloc() else { throw NetlinkError(call: "nl_socket_alloc", errno: ENOMEM) }
        let result = nl_connect(handle, protocolNumber)
        guard result == 0 else {
            let number = errno
            nl_socket_free(handle)
            throw NetlinkError(call: "nl_connect", errno: number == 0 ? EPERM : number)
        }
        let descriptor = nl_socket_get_fd(handle)
        do {
            _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
            guard nl_socket_set_nonblocking(handle) == 0 else { throw NetlinkError(call: "fcntl", errno: errno) }
            if let receiveBuffer { Self.setReceiveBuffer(receiveBuffer, of: handle, descriptor) }
            // Old kernels have no strict checking. Dumps are then not filtered, which costs only time.
            var one: Int32 = 1
            _ = setsockopt(descriptor, SOL_NETLINK, NETLINK_GET_STRICT_CHK, &one, socklen_t(MemoryLayout<Int32>.size))
            for group in groups where nl_socket_add_membership(handle, Int32(group.rawValue)) != 0 {
                // Nexthop objects need Linux 5.3, and few need the settings of interfaces; all other groups are required.
                if [RTNLGRP_NEXTHOP, RTNLGRP_IPV4_NETCONF, RTNLGRP_IPV6_NETCONF].contains(group) { continue }
                throw NetlinkError(call: Self.joining, errno: errno)
            }
        } catch let error as NetlinkError {
            nl_socket_free(handle)
            throw error
        } catch {
            nl_socket_free(handle)
            throw NetlinkError(call: "netlink", errno: EIO)
        }
        self.handle = handle
        self.descriptor = descriptor
        self.batch = batch
        buffer = .allocate(byteCount: batch * Self.datagramCapacity, alignment: 4096)
        headers = .allocate(capacity: batch)
    }

    deinit {
        buffer.deallocate()
        headers.deallocate()
        nl_socket_free(handle)
    }

    // A size above net.core.rmem_max needs CAP_NET_ADMIN. Without the capability the kernel limits the size.
    private static func setReceiveBuffer(_ bytes: Int32, of handle: OpaquePointer, _ descriptor: Int32) {
        var size = bytes
        if setsockopt(descriptor, SOL_SOCKET, SO_RCVBUFFORCE, &size, socklen_t(MemoryLayout<Int32>.size)) != 0 {
            _ = nl_socket_set_buffer_size(handle, bytes, 0)
        }
    }

    /// The port number that the kernel assigned to the socket.
    var port: UInt32 { nl_socket_get_local_port(handle) }

    /// Sends one request. The kernel has processed the request when the call returns.
    func send(_ message: borrowing NetlinkRequest) -> Int32 {
        let header = nlmsg_hdr(message.handle)
        var kernel = sockaddr_nl()
        kernel.nl_family = sa_family_t(AF_NETLINK)
        let sent = withUnsafePointer(to: &kernel) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                sendto(
                    descriptor, header, Int(header?.pointee.nlmsg_len ?? 0), Int32(MSG_DONTWAIT), $0,
                    socklen_t(MemoryLayout<sockaddr_nl>.size))
            }
        }
        return sent < 0 ? errno : 0
    }

    /// Sends several encoded requests in one datagram. The kernel has processed them when the call returns.
    func send(_ requests: [UInt8]) -> Int32 {
        var kernel = sockaddr_nl()
        kernel.nl_family = sa_family_t(AF_NETLINK)
        let sent = withUnsafePointer(to: &kernel) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                sendto(
                    descriptor, requests, requests.count, Int32(MSG_DONTWAIT), $0, socklen_t(MemoryLayout<sockaddr_nl>.size))
            }
        }
        return sent < 0 ? errno : 0
    }

    /// Reads one datagram. Datagrams from other processes are dropped: only the kernel (port 0) is trusted.
    func receive() -> Received {
        while true {
            var end = Received.empty
            var found: UnsafeRawBufferPointer?
            let count = receive(atMost: 1, &end) { found = $0 }
            if let found { return .datagram(found) }
            if count == 0 { return end }
        }
    }

    /// Reads up to `limit` datagrams with one system call, at most as many as fit the buffer. Passes each datagram from the
    /// kernel to `body`; a datagram is valid until the next read.
    ///
    /// - Returns: the number of datagrams. If it is less than `limit`, the queue is empty, and `end` is the reason: `.empty`, or
    ///   an error. An error is reported alone: after other datagrams, the next read reports it.
    func receive(atMost limit: Int, _ end: inout Received, _ body: (UnsafeRawBufferPointer) -> Void) -> Int {
        end = .empty
        var count: Int32
        repeat {
            count = netwatch_receive(descriptor, buffer.baseAddress, Self.datagramCapacity, Int32(min(limit, batch)), headers)
        } while count == -EINTR
        guard count > 0 else {
            switch -count {
            case EAGAIN: break
            case ENOBUFS: end = .overrun
            case 0: end = .failed(errno: ECONNRESET)
            case let number: end = .failed(errno: number)
            }
            return 0
        }
        for place in 0..<Int(count) where headers[place].sender == 0 {
            // An event that did not fit is a lost event.
            if headers[place].flags & Int32(MSG_TRUNC) != 0 {
                end = .overrun
                return 0
            }
            let start = buffer.baseAddress.map { $0 + place * Self.datagramCapacity }
            body(UnsafeRawBufferPointer(start: start, count: Int(headers[place].length)))
        }
        return Int(count)
    }
}

/// The error of a netlink call that the system refused.
struct NetlinkError: Error, Hashable, Sendable {
    let call: String
    let errno: Int32
}
