internal import ByteComparison
internal import Glibc

/// Counts the packets of one port that this machine drops itself. Its packet filter says nothing to the sender of a TCP segment that it drops, but the
/// counters of the network namespace do (proc_pid_net(5), SNMP counters of the kernel): a burst of SYN segments to the port leaves this difference.
///
/// | dropped at | counter |
/// |---|---|
/// | the output | all of them were requested (`OutRequests`), and none transmitted (`OutTransmits`) |
/// | the input | as many packets more were received (`InReceives`) than delivered or forwarded (`InDelivers`, `ForwDatagrams`) |
/// | the reverse path | the same, and `IPReversePathFilter` has grown by as many |
/// | the server, or on the way | none |
///
/// Other packets move the counters too. The first row is read around the calls of connect(2), and the others in the time in which the answers arrive, which must
/// have at least as many drops as the burst has segments, and the longer time after it few. One count alone proves nothing: ``FailureStreak`` needs two that agree.
struct DropCounter: ~Copyable {
    /// The numbers of connections of a burst, in turn. Two counts that agree have different ones, so that packets which come by themselves in bursts
    /// of one size do not look like their answers.
    static let sizes = [8, 24]
    /// The maximum number of further drops while the answers arrive: those of the questions and of the search that begin with a burst (``HopSearch``).
    static let others = 24
    /// The number of drops after that time from which other packets are dropped all the time.
    static let noise = 8

    private let size: Int
    private let port: UInt16
    private let family: IPAddress.Family
    private var connections: [Int32] = []
    private let isDroppedAtOutput: Bool
    private let before: PacketCounters
    /// The counters at the end of the time in which answers to the burst arrive; `nil` before.
    private var middle: PacketCounters?

    /// Sends the burst of a size. - Returns: `nil` if the counters cannot be read, or a connection cannot be opened.
    init?(_ query: HostQuery, size: Int) {
        guard let port = query.port, let before = PacketCounters.read(query.host.address.family) else { return nil }
        let address = query.host.address
        let destination = HopSearch.Destination(address, port: port, selector: query.selector)
        let zone = address.isLinkLocal ? query.host.interface : 0
        var opened: [Int32] = []
        for _ in 0..<size {
            guard
                let descriptor = HopLimitedSocket.open(destination, zone: zone, boundTo: query.isBound ? query.host.interface : 0)
            else { break }
            opened.append(descriptor)
        }
        guard opened.count == size, let after = PacketCounters.read(address.family) else {
            for descriptor in opened { Glibc.close(descriptor) }
            return nil
        }
        let sent = after.since(before)
        (self.size, self.port, family, self.before, connections) = (size, port, address.family, before, opened)
        // The kernel may send another segment again meanwhile.
        isDroppedAtOutput = (size...size + 4).contains(sent.requested &- sent.transmitted)
    }

    deinit { for descriptor in connections { Glibc.close(descriptor) } }

    /// Reads the counters at the end of the time in which answers to the burst arrive. Later calls have no effect.
    mutating func answersHaveArrived() {
        if middle == nil { middle = PacketCounters.read(family) }
    }

    /// Reads the counters at the end. - Returns: the count; `nil` if the counters could not be read.
    consuming func finish() -> DropCount? {
        if isDroppedAtOutput { return DropCount(port, .output) }
        guard let middle, let end = PacketCounters.read(family) else { return nil }
        return DropCount(port, Self.place(of: size, middle.since(before), then: end.since(middle)))
    }

    /// Returns where the answers to a burst were dropped, by the counters of the time in which they arrive and of the time after it.
    static func place(of size: Int, _ arrival: PacketCounters, then rest: PacketCounters) -> DropCount.Place? {
        let answers = size...size + others
        guard answers.contains(arrival.undelivered), rest.undelivered < noise else { return nil }
        return answers.contains(arrival.reversePath) ? .reversePath : .input
    }
}

/// The counters of IP packets of a network namespace, or their growth.
struct PacketCounters: Hashable {
    var requested = 0
    var transmitted = 0
    var received = 0
    var delivered = 0
    var forwarded = 0
    /// The packets that a strict `rp_filter` has dropped. IPv6 has none.
    var reversePath = 0

    /// The packets that arrived, and were neither delivered nor forwarded.
    var undelivered: Int { received &- delivered &- forwarded }

    /// Returns the growth since earlier counters.
    func since(_ earlier: PacketCounters) -> PacketCounters {
        PacketCounters(
            requested: requested &- earlier.requested, transmitted: transmitted &- earlier.transmitted,
            received: received &- earlier.received, delivered: delivered &- earlier.delivered,
            forwarded: forwarded &- earlier.forwarded, reversePath: reversePath &- earlier.reversePath)
    }

    /// Reads the counters of the namespace of this thread. - Returns: `nil` without /proc, or from a kernel without `OutTransmits`.
    static func read(_ family: IPAddress.Family) -> PacketCounters? {
        let directory = "/proc/thread-self/net"
        switch family {
        case .v4:
            return PacketCounters(
                snmp: SystemFile.contents(of: "\(directory)/snmp"), netstat: SystemFile.contents(of: "\(directory)/netstat"))
        case .v6: return PacketCounters(snmp6: SystemFile.contents(of: "\(directory)/snmp6"))
        }
    }

    /// Reads the files `snmp` and `netstat`: each protocol has a line of names and a line of values.
    init?(snmp: [UInt8], netstat: [UInt8]) {
        guard let ip = Self.values(of: "Ip", in: snmp), let requested = ip["OutRequests"], let transmitted = ip["OutTransmits"],
            let received = ip["InReceives"], let delivered = ip["InDelivers"], let forwarded = ip["ForwDatagrams"]
        else { return nil }
        self.init(
            requested: requested, transmitted: transmitted, received: received, delivered: delivered, forwarded: forwarded,
            reversePath: Self.values(of: "TcpExt", in: netstat)?["IPReversePathFilter"] ?? 0)
    }

    /// Reads the file `snmp6`: each line has a name and a value.
    init?(snmp6: [UInt8]) {
        var values: [ExactString: Int] = [:]
        for line in String(decoding: snmp6, as: UTF8.self).split(separator: "\n") {
            let words = line.split(whereSeparator: \.isWhitespace)
            if words.count == 2 { values[ExactString(String(words[0]))] = Int(words[1]) }
        }
        guard let requested = values["Ip6OutRequests"], let transmitted = values["Ip6OutTransmits"],
            let received = values["Ip6InReceives"], let delivered = values["Ip6InDelivers"],
            let forwarded = values["Ip6OutForwDatagrams"]
        else { return nil }
        self.init(requested: requested, transmitted: transmitted, received: received, delivered: delivered, forwarded: forwarded)
    }

    init(
        requested: Int = 0, transmitted: Int = 0, received: Int = 0, delivered: Int = 0, forwarded: Int = 0, reversePath: Int = 0
    ) {
        (self.requested, self.transmitted, self.received) = (requested, transmitted, received)
        (self.delivered, self.forwarded, self.reversePath) = (delivered, forwarded, reversePath)
    }

    private static func values(of protocolName: String, in bytes: [UInt8]) -> [ExactString: Int]? {
        let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n").filter { $0.hasPrefix("\(protocolName):") }
        guard lines.count == 2 else { return nil }
        let (names, values) = (lines[0].split(separator: " ").dropFirst(), lines[1].split(separator: " ").dropFirst())
        return Dictionary(
            zip(names.map { ExactString(String($0)) }, values.map { Int($0) ?? 0 }), uniquingKeysWith: { first, _ in first })
    }
}
