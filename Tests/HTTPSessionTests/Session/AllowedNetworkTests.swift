import EventLoop
import Expectations
import Foundation
import HTTPSession
import HTTPSessionFoundation
import HTTPSessionTestKit
import NetworkLab
import Testing

@testable import Reachability

/// Requests over cellular, expensive and constrained networks, as a path monitor reports them. The monitor watches an empty
/// network namespace, in which nothing changes; the tests publish the paths.
@Suite(.requiresNamespaces, .timeLimit(.minutes(20))) struct AllowedNetworkTests {
    private let monitor: PathMonitor
    private let host: LabHost
    private let log = EventLog()

    init() async throws {
        host = try Lab().host()
        monitor = try PathMonitor(namespace: NetworkNamespace(host.path))
        _ = await monitor.firstPath()
    }

    private func publish(
        _ type: InterfaceType, isExpensive: Bool = false, isConstrained: Bool = false, below: InterfaceType? = nil
    ) {
        func interface(_ name: String, _ type: InterfaceType) -> NetworkInterface {
            NetworkInterface(
                name: name, index: 2, type: type, isVirtual: false, isExpensive: isExpensive, level: .routable, addresses: [])
        }
        let top = interface("up0", type)
        publish(
            NetworkPath(
                status: .satisfied, interface: top, interfaceV4: top, underlying: below.map { interface("low0", $0) },
                isExpensive: isExpensive, isConstrained: isConstrained))
    }

    private func publish(_ path: NetworkPath) {
        monitor.core.paths.publish(
            PathUpdate(
                path: path, reasons: [], isInitial: false, coalescedEventCount: 0,
                moment: Moment(monotonicNanoseconds: 0, wallClockNanoseconds: 0)))
    }

    private func session(_ port: UInt16, _ change: (inout SessionConfiguration) -> Void = { _ in }) throws -> HTTPSessionManager {
        try HTTPSessionManager(
            configuration: localConfiguration {
                $0.hostOverrides = [.init(host: "named.example", port: Int(port), addresses: ["127.0.0.1"])]
                $0.waitsForConnectivity = false
                change(&$0)
            }, monitor: monitor, eventMonitors: [log])
    }

    private func request(
        _ server: TestServer, _ path: String = "/", _ change: (inout TransferRequest.Options) -> Void = { _ in }
    ) throws -> TransferRequest {
        var request = TransferRequest(url: try #require(URL(string: "http://named.example:\(server.port)\(path)")))
        change(&request.options)
        return request
    }

    @Test func `metrics record whether the network was cellular, expensive or constrained when a transaction began`()
        async throws
    {
        let server = try TestServer { _ in StubResponse(body: "x") }
        let session = try session(server.port)
        func network() async throws -> [Bool?] {
            let metrics = try await session.dataTask(for: request(server)).response.metrics
            return metrics.transactions.flatMap { [$0.isCellular, $0.isExpensive, $0.isConstrained] }
        }
        publish(.cellular, isExpensive: true)
        try await expectEqual(network(), [true, true, false])
        publish(.wifi, isConstrained: true)
        try await expectEqual(network(), [false, false, true])
        // The loopback address is on none of these networks, and without a path the values are unknown.
        let local = try await session.dataTask(for: TransferRequest(url: server.url())).response.metrics.transactions
        #expect(local.map(\.isCellular) == [nil] && local.map(\.isExpensive) == [nil] && local.map(\.isConstrained) == [nil])
        publish(NetworkPath(status: .unsatisfied))
        try await expectEqual(network(), [nil, nil, nil])
    }

    @Test func `a cellular network is used unless the session or the request refuses it`() async throws {
        let server = try TestServer { _ in StubResponse(body: "x") }
        publish(.cellular, isExpensive: true)
        let anyway = try session(server.port)
        try await expectEqual(anyway.dataTask(for: request(server)).response.data, Data("x".utf8))
        let error = await failure(anyway.dataTask(for: try request(server) { $0.allowsCellularAccess = false }))
        expectEqual(error?.code, .networkNotAllowed)
        expectEqual(error?.urlErrorCode, .dataNotAllowed)
        let sparing = try session(server.port) { $0.allowsCellularAccess = false }
        await expectEqual(failure(sparing.dataTask(for: try request(server)))?.code, .networkNotAllowed)
        try await expectEqual(sparing.dataTask(for: request(server) { $0.allowsCellularAccess = true }).response.statusCode, 200)
        // A tunnel over a cellular interface counts as cellular.
        publish(.tunnel, below: .cellular)
        await expectEqual(failure(sparing.dataTask(for: try request(server)))?.code, .networkNotAllowed)
        // Each request is checked against the network at the time of that request.
        publish(.wifi)
        try await expectEqual(sparing.dataTask(for: request(server)).response.statusCode, 200)
        expectEqual(server.requests.count, 3)
    }

    @Test func `expensive and constrained networks are used unless the session or the request refuses them`() async throws {
        let server = try TestServer { _ in StubResponse() }
        let sparing = try session(server.port) { $0.allowsExpensiveAccess = false }
        let gentle = try session(server.port) { $0.allowsConstrainedAccess = false }
        publish(.usb, isExpensive: true)
        await expectEqual(failure(sparing.dataTask(for: try request(server)))?.code, .networkNotAllowed)
        try await expectEqual(sparing.dataTask(for: request(server) { $0.allowsExpensiveAccess = true }).response.statusCode, 200)
        try await expectEqual(gentle.dataTask(for: request(server)).response.statusCode, 200)
        publish(.wifi, isConstrained: true)
        await expectEqual(failure(gentle.dataTask(for: try request(server)))?.code, .networkNotAllowed)
        try await expectEqual(
            gentle.dataTask(for: request(server) { $0.allowsConstrainedAccess = true }).response.statusCode, 200)
        try await expectEqual(sparing.dataTask(for: request(server)).response.statusCode, 200)
        expectEqual(server.requests.count, 4)
    }

    @Test func `a redirect is checked against the network at the time of the redirect`() async throws {
        let server = try TestServer { [self] request in
            if request.path == "/" {
                publish(.cellular)
                return .redirect(to: "/next")
            }
            return StubResponse()
        }
        publish(.wired)
        let session = try session(server.port) { $0.allowsCellularAccess = false }
        await expectEqual(failure(session.dataTask(for: try request(server)))?.code, .networkNotAllowed)
        expectEqual(server.requests.map(\.path), ["/"])
    }

    @Test func `a task that waits for connectivity waits until an allowed network is available`() async throws {
        let server = try TestServer { _ in StubResponse(body: "x") }
        publish(.cellular)
        let session = try session(server.port) { ($0.allowsCellularAccess, $0.waitsForConnectivity) = (false, true) }
        let task = session.dataTask(for: try request(server))
        await log.await("waiting for connectivity")
        expectEqual(task.state, .waitingForConnectivity)
        // Neither an unsatisfied path nor another cellular one ends the wait.
        publish(NetworkPath(status: .unsatisfied))
        publish(.tunnel, below: .cellular)
        let impatient = session.dataTask(for: try request(server) { $0.waitsForConnectivity = false })
        await expectEqual(failure(impatient)?.code, .networkNotAllowed)
        expectEmpty(server.requests)
        publish(.wifi)
        let response = try await task.response
        expectEqual(response.data, Data("x".utf8))
        expectEqual(response.metrics.retryCount, 0)
        #expect(response.metrics.timeWaitingForConnectivity > .zero)
    }

    @Test func `a running task whose network changes to a refused one waits for an allowed network`() async throws {
        let server = try TestServer { [self] request in
            if request.path == "/" {
                publish(.cellular)
                return .redirect(to: "/next")
            }
            return StubResponse(body: "x")
        }
        publish(.wired)
        let session = try session(server.port) { ($0.allowsCellularAccess, $0.waitsForConnectivity) = (false, true) }
        let task = session.dataTask(for: try request(server))
        await log.await("waiting for connectivity")
        publish(.wifi)
        try await expectEqual(task.response.data, Data("x".utf8))
        expectEqual(server.requests.map(\.path), ["/", "/next"])
    }

    @Test func `requests to loopback and over an unknown network are never refused`() async throws {
        let server = try TestServer { _ in StubResponse() }
        let none = try session(server.port) {
            ($0.allowsCellularAccess, $0.allowsExpensiveAccess, $0.allowsConstrainedAccess) = (false, false, false)
        }
        publish(.cellular, isExpensive: true, isConstrained: true)
        try await expectEqual(none.dataTask(for: TransferRequest(url: server.url())).response.statusCode, 200)
        publish(NetworkPath(status: .unsatisfied))
        try await expectEqual(none.dataTask(for: request(server)).response.statusCode, 200)
    }

    @Test func `without a network the error is notConnected, not cannotConnectToHost`() async throws {
        let server = try TestServer { _ in StubResponse() }
        let port = server.port
        server.stop()
        publish(NetworkPath(status: .unsatisfied))
        let session = try session(port)
        await expectEqual(failure(session.dataTask(for: try request(server)))?.code, .notConnected)
        publish(.wired)
        await expectEqual(failure(session.dataTask(for: try request(server)))?.code, .cannotConnectToHost)
    }

    /// A client with two networks: by cable to a server at 192.0.2.1, and by radio, the default route, to the same server at
    /// 198.51.100.1.
    private func twoNetworks() throws -> (client: LabHost, far: LabHost, server: TestServer) {
        let lab = Lab()
        let (client, far) = try (lab.host(), lab.host())
        for (name, network) in [("cable0", "192.0.2"), ("radio0", "198.51.100")] {
            try lab.connect(client, name, far, name)
            for (end, number) in [(client, 2), (far, 1)] {
                try end.ip("addr add \(network).\(number)/24 dev \(name)")
                try end.ip("link set \(name) up")
            }
        }
        func interface(_ name: String, _ index: UInt32, _ type: InterfaceType, _ address: String) throws -> NetworkInterface {
            NetworkInterface(
                name: name, index: index, type: type, isVirtual: false, isExpensive: type == .cellular, level: .routable,
                addresses: [IPPrefix(try #require(IPAddress(address)), length: 24)])
        }
        let (cable, radio) = try (interface("cable0", 2, .wired, "192.0.2.2"), interface("radio0", 3, .cellular, "198.51.100.2"))
        publish(
            NetworkPath(
                status: .satisfied, interface: radio, interfaceV4: radio, isExpensive: true, interfaces: [cable, radio]))
        var configuration = TestServer.Configuration()
        configuration.namespace = NetworkNamespace(far.path)
        return (
            client, far,
            try TestServer(at: .ip("0.0.0.0", port: 0), configuration: configuration) { _ in StubResponse(body: "x") }
        )
    }

    @Test(arguments: [\SessionConfiguration.allowsCellularAccess, \.allowsExpensiveAccess])
    func `the route to the server's address decides whether access is allowed, not the default route`(
        _ option: any WritableKeyPath<SessionConfiguration, Bool> & Sendable
    ) async throws {
        let (client, far, server) = try twoNetworks()
        defer { withExtendedLifetime(far) {} }
        let session = try session(server.port) {
            $0.namespace = NetworkNamespace(client.path)
            $0[keyPath: option] = false
            $0.hostOverrides = [
                .init(host: "cable.example", port: Int(server.port), addresses: ["192.0.2.1"]),
                .init(host: "radio.example", port: Int(server.port), addresses: ["198.51.100.1"]),
                .init(host: "both.example", port: Int(server.port), addresses: ["198.51.100.1", "192.0.2.1"]),
            ]
        }
        func get(_ host: String, _ change: (inout TransferRequest.Options) -> Void = { _ in }) throws -> TransferTask {
            var request = TransferRequest(url: try #require(URL(string: "http://\(host):\(server.port)/")))
            change(&request.options)
            return session.dataTask(for: request)
        }
        try await expectEqual(get("cable.example").response.metrics.transactions.last?.localAddress, "192.0.2.2")
        await expectEqual(failure(try get("radio.example"))?.code, .networkNotAllowed)
        await expectEqual(failure(try get("198.51.100.1"))?.code, .networkNotAllowed)
        try await expectEqual(get("both.example").response.metrics.transactions.last?.localAddress, "192.0.2.2")
        expectEqual(server.requests.count, 2)
        // A request that refuses cellular access does not reuse a connection that another request made over it.
        _ = try await get("radio.example") { ($0.allowsCellularAccess, $0.allowsExpensiveAccess) = (true, true) }.response
        await expectEqual(failure(try get("radio.example"))?.code, .networkNotAllowed)
        expectEqual(server.requests.count, 3)
    }

    @Test(.requires(Nginx.program))
    func `a request that refuses cellular access does not share another request's HTTP/2 connection`()
        async throws
    {
        let (client, far, _) = try twoNetworks()
        let nginx = try Nginx(on: far, address: "198.51.100.1")
        let policy = try SecurityPolicy.trusting(nginx.identity)
        let session = try session(1) {
            ($0.namespace, $0.securityPolicy) = (NetworkNamespace(client.path), policy)
        }
        let request = TransferRequest(url: try nginx.tlsURL("/1k"))
        try await expectEqual(session.dataTask(for: request).response.metrics.transactions.last?.networkProtocolName, "h2")
        var sparing = request
        sparing.options.allowsCellularAccess = false
        await expectEqual(failure(session.dataTask(for: sparing))?.code, .networkNotAllowed)
        try await expectEqual(session.dataTask(for: request).response.metrics.transactions.last?.isReusedConnection, true)
    }

    @Test func `a session bound to an interface is checked against that interface`() async throws {
        let (client, far, server) = try twoNetworks()
        defer { withExtendedLifetime(far) {} }
        for (interface, address, isAllowed) in [("cable0", "192.0.2.1", true), ("radio0", "198.51.100.1", false)] {
            let session = try session(server.port) {
                ($0.namespace, $0.interface) = (NetworkNamespace(client.path), interface)
                $0.allowsCellularAccess = false
                $0.hostOverrides = [.init(host: "named.example", port: Int(server.port), addresses: [address])]
            }
            let error = await failure(session.dataTask(for: try request(server)))
            expectEqual(error?.code, (isAllowed ? nil : .networkNotAllowed), "\(error.map { "\($0)" } ?? "no error")")
        }
        expectEqual(server.requests.count, 1)
    }
}
