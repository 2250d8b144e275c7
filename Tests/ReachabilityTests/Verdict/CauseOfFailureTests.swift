import Expectations
import Testing

@testable import Reachability

/// The table of causes in docs/command-line.md, tested with the evidence of one attempt.
@Suite struct CauseOfFailureTests {
    private static let gateway = "10.0.0.1"

    private func cause(
        _ number: SystemErrorNumber, call: String = "handshake", origin: UInt8 = 2, icmp: (UInt8, UInt8)? = nil,
        from: String? = nil,
        to address: String = "192.0.2.1", over gateway: String? = CauseOfFailureTests.gateway, source: String? = "10.0.0.2",
        kind: Route.Kind = .unicast, neighbor: NeighborAnswer = .unknown
    ) throws -> Cause {
        let reporter = icmp.map {
            ProbeResult.Reporter(origin: origin, type: $0.0, code: $0.1, offender: from.flatMap { IPAddress($0) })
        }
        let route = ChosenRoute(
            kind: kind, interface: 2, gateway: gateway.flatMap { IPAddress($0) }, source: source.flatMap { IPAddress($0) })
        return FailedAttempt(
            candidate: Candidate(address: try #require(IPAddress(address)), port: 443, zone: 0, boundTo: 0), route: route,
            result: ProbeResult(id: 1, errno: number.rawValue, call: call, reporter: reporter), neighbor: neighbor,
            elapsedNanoseconds: 7_000_000
        ).cause(in: Transcript.Host().localState)
    }

    private func name(_ cause: Cause) -> String { "\(cause.layer.rawValue)/\(cause.code.rawValue)" }

    @Test(
        arguments: [
            (.connectionRefused, "tcp/refused"), (.connectionReset, "tcp/reset"), (.timedOut, "network/upstream-silent"),
            (.hostUnreachable, "neighbor/gateway-silent"), (.networkUnreachable, "network/net-unreachable"),
            (.messageTooLong, "network/packet-too-big"), (.notPermitted, "firewall/local-reject"),
            (.networkDown, "link/interface-down"),
        ] as [(SystemErrorNumber, String)])
    func `a handshake without ICMP fails with the cause of its errno`(number: SystemErrorNumber, expected: String) throws {
        expectEqual(name(try cause(number)), expected)
    }

    @Test(
        arguments: [
            ("socket", .tooManyFiles, "local/file-limit"), ("socket", .tooManyFilesInSystem, "local/file-limit"),
            ("socket", .noBufferSpace, "local/file-limit"), ("socket", .familyNotSupported, "local/not-permitted"),
            ("socket", .notPermitted, "local/not-permitted"),
            ("setsockopt", .noDevice, "link/no-interface"), ("setsockopt", .notPermitted, "local/source-unavailable"),
            ("connect", .networkUnreachable, "route/no-route"), ("connect", .hostUnreachable, "route/route-unreachable"),
            ("connect", .accessDenied, "local/not-permitted"), ("connect", .invalid, "route/route-blackhole"),
            ("connect", .notPermitted, "firewall/local-reject"), ("connect", .networkDown, "link/interface-down"),
            ("connect", .addressNotAvailable, "local/port-exhausted"),
        ] as [(String, SystemErrorNumber, String)])
    func `a failed socket call does not accuse the server`(call: String, number: SystemErrorNumber, expected: String) throws {
        let cause = try cause(number, call: call)
        expectEqual(name(cause), expected)
        #expect(!cause.accusesServer)
        expectEqual(cause.evidence["call"], .text(call))
        expectEqual(cause.evidence["errno"], .text(number.name))
    }

    @Test func `an unavailable address without a source address is not port exhaustion`() throws {
        expectEqual(name(try cause(.addressNotAvailable, call: "connect", source: nil)), "local/source-unavailable")
    }

    @Test(
        arguments: [
            (0, "net-unreachable"), (1, "host-unreachable"), (2, "port-filtered"), (3, "port-filtered"), (4, "packet-too-big"),
            (9, "admin-prohibited"), (10, "admin-prohibited"), (13, "admin-prohibited"), (7, "host-unreachable"),
        ] as [(UInt8, String)])
    func `a router's ICMP error gives a network cause that names the router`(code: UInt8, expected: String) throws {
        let cause = try cause(.connectionRefused, icmp: (3, code), from: "203.0.113.9")
        expectEqual(name(cause), "network/\(expected)")
        expectEqual(cause.evidence["hop"], .text("203.0.113.9"))
        expectEqual(cause.evidence["icmp_type"], .number(3))
        expectEqual(cause.evidence["icmp_code"], .number(Int(code)))
    }

    @Test(
        arguments: [
            (1, 0, "net-unreachable"), (1, 1, "admin-prohibited"), (1, 3, "host-unreachable"), (1, 4, "port-filtered"),
            (2, 0, "packet-too-big"), (3, 0, "ttl-exceeded"),
        ] as [(UInt8, UInt8, String)])
    func `a router's ICMPv6 error gives a network cause`(type: UInt8, code: UInt8, expected: String) throws {
        let cause = try cause(.hostUnreachable, origin: 3, icmp: (type, code), from: "2001:db8:9::1", to: "2001:db8::1")
        expectEqual(name(cause), "network/\(expected)")
    }

    @Test func `ICMP time exceeded (type 11) gives ttl-exceeded`() throws {
        expectEqual(name(try cause(.hostUnreachable, icmp: (11, 0), from: "203.0.113.9")), "network/ttl-exceeded")
    }

    @Test(arguments: ["10.0.0.2", "127.0.0.1", nil] as [String?])
    func `an ICMP error from this machine is a local firewall's rejection`(from: String?) throws {
        expectEqual(name(try cause(.connectionRefused, icmp: (3, 3), from: from)), "firewall/local-reject")
        expectEqual(name(try cause(.hostUnreachable, icmp: (3, 13), from: from)), "firewall/local-reject")
    }

    @Test(arguments: [.absent, .state(.reachable), .state(.stale), .state(.delay), .state(.probe)] as [NeighborAnswer])
    func `host unreachable from this machine is a local firewall's rejection if the neighbor has not failed`(
        neighbor: NeighborAnswer
    ) throws {
        for gateway in ["10.0.0.1", nil] {
            let cause = try cause(.hostUnreachable, icmp: (3, 1), from: "10.0.0.2", over: gateway, neighbor: neighbor)
            expectEqual(name(cause), "firewall/local-reject")
        }
        expectEqual(name(try cause(.hostUnreachable, neighbor: neighbor)), "network/host-unreachable")
    }

    @Test(arguments: [.unknown, .state(.failed), .state(.incomplete)] as [NeighborAnswer])
    func `host unreachable from this machine is a silent gateway if the neighbor failed`(neighbor: NeighborAnswer) throws {
        let cause = try cause(.hostUnreachable, icmp: (3, 1), from: "10.0.0.2", neighbor: neighbor)
        expectEqual(name(cause), "neighbor/gateway-silent")
        expectEqual(name(try self.cause(.hostUnreachable, neighbor: neighbor)), "neighbor/gateway-silent")
    }

    @Test func `host unreachable from this machine names the silent gateway or host`() throws {
        expectEqual(name(try cause(.hostUnreachable, icmp: (3, 1), from: "10.0.0.2")), "neighbor/gateway-silent")
        expectEqual(name(try cause(.hostUnreachable, icmp: (3, 1), from: "10.0.0.2", over: nil)), "neighbor/host-silent")
        // A route to this machine itself has no neighbor.
        let toItself = try cause(.hostUnreachable, icmp: (3, 1), from: "10.0.0.2", over: nil, kind: .local)
        expectEqual(name(toItself), "firewall/local-reject")
    }

    @Test(arguments: [
        (SystemErrorNumber.connectionRefused, "this machine (127.0.0.1) refuses connections to port 443"),
        (.timedOut, "this machine (127.0.0.1) does not answer on port 443"),
    ])
    func `a loopback address is named as this machine`(number: SystemErrorNumber, detail: String) throws {
        let candidate = Candidate(address: IPAddress(v4: 0x7f00_0001), port: 443, zone: 0, boundTo: 0)
        let failure = FailedAttempt(
            candidate: candidate, route: ChosenRoute(kind: .local, interface: 1),
            result: ProbeResult(id: 1, errno: number.rawValue, call: "handshake"), elapsedNanoseconds: 0)
        expectEqual(failure.cause(in: Transcript.Host().localState).detail, detail)
    }

    @Test func `a timeout behind a failed neighbor is a silent neighbor`() throws {
        expectEqual(name(try cause(.timedOut, neighbor: .state(.failed))), "neighbor/gateway-silent")
        expectEqual(name(try cause(.timedOut, over: nil, neighbor: .state(.incomplete))), "neighbor/host-silent")
        expectEqual(name(try cause(.timedOut, neighbor: .state(.stale))), "network/upstream-silent")
    }

    @Test func `this machine's own host unreachable after seconds is a silent neighbor, also if the table has forgotten it`()
        throws
    {
        var failure = FailedAttempt(
            candidate: Candidate(address: IPAddress(v4: 0x0a00_0063), port: 80, zone: 0, boundTo: 0),
            route: ChosenRoute(interface: 2, source: IPAddress(v4: 0x0a00_0002)),
            result: ProbeResult(
                id: 1, errno: SystemErrorNumber.hostUnreachable.rawValue, call: "handshake",
                reporter: .init(origin: 2, type: 3, code: 1, offender: IPAddress(v4: 0x0a00_0002))),
            neighbor: .absent, elapsedNanoseconds: 3_050_000_000)
        expectEqual(name(failure.cause(in: Transcript.Host().localState)), "neighbor/host-silent")
        failure.elapsedNanoseconds = 1_000_000
        expectEqual(name(failure.cause(in: Transcript.Host().localState)), "firewall/local-reject")
    }
}
