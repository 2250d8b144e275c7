internal import CLibnl
internal import CLinux
internal import EventLoop
internal import Glibc

/// The kernel as a monitor's loop uses it; on that loop's thread only.
protocol KernelSource: AnyObject {
    /// Readable when events wait; `nil` where none come and everything has to be dumped again from time to time.
    var eventDescriptor: Int32? { get }
    /// Readable while a dump goes on; `nil` where a dump is complete as soon as it is asked for.
    var dumpDescriptor: Int32? { get }
    /// Reads what events wait, up to a turn's limit.
    func readEvents(_ body: (UnsafeRawBufferPointer) -> Void) -> NetlinkSource.Drained
    /// Asks for a dump of a table, or of its routes over an interface only; its slices come with ``readDump(_:)``. Returns an errno,
    /// 0 when asked.
    func startDump(_ table: KernelTable, over interface: UInt32?, sequence: UInt32) -> Int32
    /// Reads a bounded number of slices. Returns an errno, 0 while all is well.
    func readDump(_ body: (UnsafeRawBufferPointer) -> Void) -> Int32
    /// Asks which ways packets would go; each answer's bytes, empty where none came.
    func ask(_ queries: ArraySlice<RouteQuery>) -> [[UInt8]]
    /// Asks for a neighbor; the answer's bytes, empty when none came.
    func ask(_ key: Neighbor.Key) -> [UInt8]
}

/// The kernel as a monitor hears it: events on one socket, dumps on a second, single questions on a third, so that none has to
/// wait for, or be told from, the others. Lives on the thread that opened it, inside its namespace.
final class NetlinkSource: KernelSource {
    /// What an event socket's turn gave.
    enum Drained: Hashable {
        /// Everything.
        case read
        /// As much as one turn may read.
        case more
        /// Events were lost; what was still queued has been thrown away.
        case overrun
        /// The socket cannot be read any more.
        case failed(errno: Int32)
    }

    private let events: NetlinkSocket?
    private let dumps: NetlinkSocket
    private let questions: NetlinkSocket
    private var sequence: UInt32 = 1
    private var requests: [UInt8] = []
    // Questions as they are sent, but for their numbers.
    private var prepared: [(query: RouteQuery, bytes: [UInt8])] = []

    /// Held for a reader that is late; 8 MiB hold about 10,000 address events.
    private static let eventBuffer: Int32 = 8 << 20
    /// At most so many datagrams a turn: dumps, probes and commands get theirs as well.
    private static let turnLimit = 512
    /// Datagrams of a dump that a turn reads: each holds some 400 routes, and takes a millisecond.
    private static let sliceLimit = 2
    /// Datagrams that one system call reads: a link that is switched on or off makes five to seven.
    private static let batch = 16
    /// Questions in one datagram: the kernel takes up to 8 KiB of the socket's 32 KiB for each answer, and drops what has no room.
    private static let atOnce = 4

    /// Opens the sockets; the groups are joined before anything can be asked. Where joining is refused, as in some sandboxes
    /// that know netlink but no events (gVisor), there is no event socket.
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
        questions = try NetlinkSocket(batch: Self.batch)
    }

    let eventDescriptor: Int32?
    var dumpDescriptor: Int32? { dumps.descriptor }

    /// Reads what the event socket holds, up to a turn's limit.
    func readEvents(_ body: (UnsafeRawBufferPointer) -> Void) -> Drained {
        for _ in 0..<Self.turnLimit / Self.batch {
            var end = NetlinkSocket.Received.empty
            // Less than a full batch: no more waited. What comes after it begins another turn.
            if receiveEvents(atMost: Self.batch, &end, body) == Self.batch { continue }
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

    // A switch, because an optional that cannot be copied cannot be chained through.
    private func receiveEvents(
        atMost limit: Int, _ end: inout NetlinkSocket.Received, _ body: (UnsafeRawBufferPointer) -> Void
    ) -> Int {
        switch events {
        case .some(let socket): socket.receive(atMost: limit, &end, body)
        case .none: 0
        }
    }

    // Every message is dropped by the kernel until the queue has been empty once (netlink_rcv_wake). The bound is for a storm
    // that fills faster than this reads: the next turn finds the next overrun then.
    private func drain() {
        var end = NetlinkSocket.Received.empty
        for _ in 0..<1_000_000 {
            if receiveEvents(atMost: Self.batch, &end, { _ in }) == 0, case .empty = end { return }
        }
    }

    /// Asks for a dump; its slices come on ``dumpDescriptor``. Returns an errno, 0 when asked.
    func startDump(_ table: KernelTable, over interface: UInt32?, sequence: UInt32) -> Int32 {
        guard let request = NetlinkRequest.dump(table, over: interface, sequence: sequence) else { return ENOMEM }
        return dumps.send(request)
    }

    /// Reads a bounded number of slices. Returns an errno, 0 while all is well.
    func readDump(_ body: (UnsafeRawBufferPointer) -> Void) -> Int32 {
        for _ in 0..<Self.sliceLimit {
            switch dumps.receive() {
            case .datagram(let bytes): body(bytes)
            case .empty: return 0
            case .overrun: return ENOBUFS
            case .failed(let errno): return errno
            }
        }
        return 0
    }

    /// Asks which ways packets would go; each answer's bytes, empty where none came.
    func ask(_ queries: ArraySlice<RouteQuery>) -> [[UInt8]] {
        guard queries.count > Self.atOnce else { return askTogether(queries) }
        return stride(from: queries.startIndex, to: queries.endIndex, by: Self.atOnce).flatMap {
            askTogether(queries[$0..<min($0 + Self.atOnce, queries.endIndex)])
        }
    }

    // All in one datagram.
    private func askTogether(_ queries: ArraySlice<RouteQuery>) -> [[UInt8]] {
        let first = sequence &+ 1
        requests.removeAll(keepingCapacity: true)
        for query in queries {
            sequence &+= 1
            add(query, sequence)
        }
        return answers(from: first, queries.count)
    }

    // The same few questions are asked all the time; what differs is the number.
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

    /// Asks for a neighbor; the answer's bytes, empty when none came.
    func ask(_ key: Neighbor.Key) -> [UInt8] {
        sequence &+= 1
        guard let request = NetlinkRequest.neighbor(key, sequence: sequence) else { return [] }
        requests.removeAll(keepingCapacity: true)
        requests += request.bytes
        return answers(from: sequence, 1).first ?? []
    }

    // rtnetlink answers within sendto: the replies are queued, one datagram each, when it returns. Answers to earlier questions are
    // passed over.
    private func answers(from first: UInt32, _ count: Int) -> [[UInt8]] {
        var answers = [[UInt8]](repeating: [], count: count)
        guard !requests.isEmpty, questions.send(requests) == 0 else { return answers }
        var missing = count
        var end = NetlinkSocket.Received.empty
        while missing > 0 {
            let read = questions.receive(atMost: Self.batch, &end) { bytes in
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
