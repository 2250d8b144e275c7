internal import CLibnl
internal import CLinux
internal import EventLoop
internal import Glibc

/// The kernel, as a monitor's loop uses it. Only the loop's thread may use it.
protocol KernelSource: AnyObject {
    /// A descriptor that is readable while events are queued; `nil` if the source delivers no events and the tables are polled.
    var eventDescriptor: Int32? { get }
    /// A descriptor that is readable while a dump runs; `nil` if a dump is complete as soon as it is requested.
    var dumpDescriptor: Int32? { get }
    /// Reads the datagrams of queued events, at most `limit` and at most as many as one turn handles.
    func readEvents(atMost limit: Int, _ body: (UnsafeRawBufferPointer) -> Void) -> NetlinkSource.Drained
    /// Requests a dump of a table, or only of its routes over one interface. ``readDump(_:)`` reads the dump's datagrams. Returns
    /// an errno; 0 if the request was sent.
    func startDump(_ table: KernelTable, over interface: UInt32?, sequence: UInt32) -> Int32
    /// Reads a bounded number of the dump's datagrams. Returns an errno; 0 on success.
    func readDump(_ body: (UnsafeRawBufferPointer) -> Void) -> Int32
    /// Requests the routes of packets. Returns the bytes of each answer; empty if the kernel did not answer.
    func ask(_ queries: ArraySlice<RouteQuery>) -> [[UInt8]]
    /// Requests the entry of a neighbor. Returns the bytes of the answer; empty if the kernel did not answer.
    func ask(_ key: Neighbor.Key) -> [UInt8]
    /// Returns the packet counters of an interface; `nil` if the kernel did not answer.
    func counters(of interface: UInt32) -> LinkCounters?
}

/// The kernel's rtnetlink interface. Events use one socket, dumps a second and queries a third: none waits for another, and their
/// messages cannot be confused. Only the thread that opened the source inside its namespace may use it.
final class NetlinkSource: KernelSource {
    /// The result of reading the event socket in one turn.
    enum Drained: Hashable {
        /// All queued events were read.
        case read
        /// The limit was reached; more events may be queued.
        case more
        /// Events were lost. The remaining queue was discarded.
        case overrun
        /// The socket cannot be read any more.
        case failed(errno: Int32)
    }

    private let events: NetlinkSocket?
    private let dumps: NetlinkSocket
    private let queriesSocket: NetlinkSocket
    private var sequence: UInt32 = 1
    private var requests: [UInt8] = []
    // Encoded queries, complete except for their sequence numbers.
    private var prepared: [(query: RouteQuery, bytes: [UInt8])] = []

    /// The size of the event socket's receive queue. 8 MiB hold about 10,000 address events.
    private static let eventBuffer: Int32 = 8 << 20
    /// The maximum number of event datagrams in one turn, so that dumps, probes and commands are served too.
    private static let turnLimit = 512
    /// The maximum number of dump datagrams in one turn. Each holds some 400 routes and takes a millisecond.
    private static let dumpReadLimit = 2
    /// The maximum number of datagrams in one system call. A link that goes up or down causes five to seven.
    private static let batch = 16
    /// The maximum number of queries in one datagram. The kernel needs up to 8 KiB of the socket's 32 KiB for each answer, and
    /// drops answers that do not fit.
    private static let queriesPerDatagram = 4

    /// Opens the sockets and joins the groups before any query can be sent. Some sandboxes support netlink but refuse to join
    /// groups (gVisor); the source then has no event socket.
    init() throws(NetlinkError) {
        do {
            let events = try NetlinkSocket(
                groups: [
                    RTNLGRP_LINK, RTNLGRP_NEIGH, RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR, RTNLGRP_IPV4_ROUTE, RTNLGRP_IPV6_ROUTE,
                    RTNLGRP_IPV4_RULE, RTNLGRP_IPV6_RULE, RTNLGRP_NEXTHOP, RTNLGRP_IPV4_NETCONF, RTNLGRP_IPV6_NETCONF,
                ],
                receiveBuffer: Self.eventBuffer, batch: Self.batch
            )
            eventDescriptor = events.descriptor
            self.events = consume events
        } catch {
            guard error.call == NetlinkSocket.joining else { throw error }
            eventDescriptor = nil
            events = nil
        }
        dumps = try NetlinkSocket()
        queriesSocket = try NetlinkSocket(batch: Self.batch)
    }

    let eventDescriptor: Int32?
    var dumpDescriptor: Int32? { dumps.descriptor }

    /// Reads the datagrams of queued events, at most `limit` and at most as many as one turn handles.
    func readEvents(atMost limit: Int, _ body: (UnsafeRawBufferPointer) -> Void) -> Drained {
        var remaining = min(limit, Self.turnLimit)
        while remaining > 0 {
            var end = NetlinkSocket.Received.empty
            let size = min(remaining, Self.batch)
            // Fewer datagrams than requested mean that the queue is empty. Later events belong to the next turn.
            if receiveEvents(atMost: size, &end, body) == size {
                remaining -= size
                continue
            }
            switch end {
            case .datagram, .empty: return .read
            case .failed(let errno): return .failed(errno: errno)
            case .overrun:
                drain()
                return .overrun
            }
        }
        return .more
    }

    // A switch is needed, because optional chaining does not work with a noncopyable value.
    private func receiveEvents(
        atMost limit: Int, _ end: inout NetlinkSocket.Received, _ body: (UnsafeRawBufferPointer) -> Void
    ) -> Int {
        switch events {
        case .some(let socket): socket.receive(atMost: limit, &end, body)
        case .none: 0
        }
    }

    // After an overrun the kernel drops every message until the queue has been empty once (netlink_rcv_wake). The loop is bounded
    // in case events arrive faster than they are read; the next turn then reports another overrun.
    private func drain() {
        var end = NetlinkSocket.Received.empty
        for _ in 0..<1_000_000 {
            if receiveEvents(atMost: Self.batch, &end, { _ in }) == 0, case .empty = end { return }
        }
    }

    /// Requests a dump; its datagrams arrive on ``dumpDescriptor``. Returns an errno; 0 if the request was sent.
    func startDump(_ table: KernelTable, over interface: UInt32?, sequence: UInt32) -> Int32 {
        guard let request = NetlinkRequest.dump(table, over: interface, sequence: sequence) else { return ENOMEM }
        return dumps.send(request)
    }

    /// Reads a bounded number of the dump's datagrams. Returns an errno; 0 on success.
    func readDump(_ body: (UnsafeRawBufferPointer) -> Void) -> Int32 {
        for _ in 0..<Self.dumpReadLimit {
            switch dumps.receive() {
            case .datagram(let bytes): body(bytes)
            case .empty: return 0
            case .overrun: return ENOBUFS
            case .failed(let errno): return errno
            }
        }
        return 0
    }

    /// Requests the routes of packets. Returns the bytes of each answer; empty if the kernel did not answer.
    func ask(_ queries: ArraySlice<RouteQuery>) -> [[UInt8]] {
        guard queries.count > Self.queriesPerDatagram else { return sendTogether(queries) }
        return stride(from: queries.startIndex, to: queries.endIndex, by: Self.queriesPerDatagram).flatMap {
            sendTogether(queries[$0..<min($0 + Self.queriesPerDatagram, queries.endIndex)])
        }
    }

    // Sends all queries in one datagram.
    private func sendTogether(_ queries: ArraySlice<RouteQuery>) -> [[UInt8]] {
        let first = sequence &+ 1
        requests.removeAll(keepingCapacity: true)
        for query in queries {
            sequence &+= 1
            add(query, sequence)
        }
        return answers(from: first, queries.count)
    }

    // A few queries are sent again and again; only their sequence numbers differ.
    private func add(_ query: RouteQuery, _ number: UInt32) {
        let start = requests.count
        if let known = prepared.firstIndex(where: { $0.query == query }) {
            requests += prepared[known].bytes
        } else {
            guard let request = NetlinkRequest.route(query, sequence: 0) else { return }
            if prepared.count == Self.batch { prepared.removeFirst() }
            prepared.append((query, request.bytes))
            requests += request.bytes
        }
        requests.withUnsafeMutableBytes { $0.storeBytes(of: number, toByteOffset: start + 8, as: UInt32.self) }
    }

    /// Requests the entry of a neighbor. Returns the bytes of the answer; empty if the kernel did not answer.
    func ask(_ key: Neighbor.Key) -> [UInt8] {
        sequence &+= 1
        guard let request = NetlinkRequest.neighbor(key, sequence: sequence) else { return [] }
        requests.removeAll(keepingCapacity: true)
        requests += request.bytes
        return answers(from: sequence, 1).first ?? []
    }

    func counters(of interface: UInt32) -> LinkCounters? {
        sequence &+= 1
        guard let request = NetlinkRequest.link(interface, sequence: sequence) else { return nil }
        requests.removeAll(keepingCapacity: true)
        requests += request.bytes
        return answers(from: sequence, 1).first.flatMap { NetlinkDecoder.counters($0) }
    }

    // rtnetlink answers within sendto: when the call returns, the replies are queued, one datagram each. Replies to earlier
    // queries are ignored.
    private func answers(from first: UInt32, _ count: Int) -> [[UInt8]] {
        var answers = [[UInt8]](repeating: [], count: count)
        guard !requests.isEmpty, queriesSocket.send(requests) == 0 else { return answers }
        var missing = count
        var end = NetlinkSocket.Received.empty
        while missing > 0 {
            let read = queriesSocket.receive(atMost: Self.batch, &end) { bytes in
                guard bytes.count >= MemoryLayout<nlmsghdr>.size else { return }
                let place = Int(bytes.loadUnaligned(as: nlmsghdr.self).nlmsg_seq &- first)
                guard place < count, answers[place].isEmpty else { return }
                answers[place] = [UInt8](bytes)
                missing -= 1
            }
            if read == 0 { break }
        }
        return answers
    }
}
