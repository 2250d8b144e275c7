import Foundation
import HTTPSession
import HTTPSessionTestKit
import NetworkLab
import Reachability

/// A client with two uplinks to the server's host, on the real kernel. The server is at 203.0.113.9, reachable over both.
struct ConnectivityLab: Sendable {
    let client: LabHost
    let site: LabHost
    let folder: ScratchDirectory
    let log = EventLog()

    /// Creates the hosts without a route to the server.
    init() throws {
        let uplinks = try Uplinks("one", "two")
        (client, site) = (uplinks.client, uplinks.site)
        folder = try ScratchDirectory()
    }

    func route(_ gateway: String, metric: Int = 10) throws {
        try client.ip("route add default via \(gateway) metric \(metric)")
    }

    func session(
        _ monitor: PathMonitor, eventMonitors: [any EventMonitor] = [], _ change: (inout SessionConfiguration) -> Void = { _ in }
    ) throws -> HTTPSessionManager {
        let configuration = localConfiguration { configuration in
            configuration.namespace = NetworkNamespace(client.path)
            configuration.retryPolicy = RetryPolicy(baseDelay: .milliseconds(1), maximumDelay: .milliseconds(1))
            // On a busy machine, a change of the lab may take longer than the default.
            configuration.connectivityTimeout = .seconds(3_600)
            change(&configuration)
        }
        return try HTTPSessionManager(configuration: configuration, monitor: monitor, eventMonitors: [log] + eventMonitors)
    }

    /// Returns a monitor that has a satisfied path, or, without `hasPath`, its first path of any status.
    func settledMonitor(hasPath: Bool = true) async throws -> PathMonitor {
        let monitor = try PathMonitor(namespace: NetworkNamespace(client.path))
        for await update in monitor.updates where update.path.status == .satisfied || !hasPath { break }
        return monitor
    }

    func server(_ reply: @escaping @Sendable (ReceivedRequest) -> StubResponse) throws -> TestServer {
        var configuration = TestServer.Configuration()
        configuration.namespace = NetworkNamespace(site.path)
        return try TestServer(at: .ip(Uplinks.server, port: 0), configuration: configuration, reply: reply)
    }

    /// Disables reverse path filtering, so that packets are accepted on an interface that their return route does not use.
    func allowDetours() throws {
        for host in [client, site] { for name in ["all", "one", "two"] { try host.set("ipv4.conf.\(name).rp_filter", "0") } }
    }

    /// A resumable file whose second half is not sent until the gate opens.
    static func half(_ request: ReceivedRequest, until gate: Gate) -> StubResponse {
        let size: Int64 = 1_000_000
        guard let range = request["range"], let start = Int64(range.dropFirst(6).dropLast()) else {
            return StubResponse(
                fields: ["ETag": "\"1\"", "Content-Length": "\(size)"],
                body: StubBody([
                    .pattern(from: 0, count: size / 2), .wait(.gate(gate)), .pattern(from: size / 2, count: size / 2),
                ]))
        }
        return StubResponse(
            206, fields: ["ETag": "\"1\"", "Content-Range": "bytes \(start)-\(size - 1)/\(size)"],
            body: StubBody([.pattern(from: start, count: size - start)]))
    }

    /// A download that has received one half; the other half does not arrive.
    func halfDownload(_ server: TestServer, over monitor: PathMonitor? = nil) async throws -> TransferTask {
        var monitor = monitor
        if monitor == nil { monitor = try await settledMonitor() }
        guard let monitor else { throw CancellationError() }
        let task = try session(monitor).downloadTask(
            for: TransferRequest(url: server.url()), to: DownloadDestination(folder.url("file")))
        await task.awaitProgress { $0.bytesReceived == 500_000 }
        return task
    }
}
