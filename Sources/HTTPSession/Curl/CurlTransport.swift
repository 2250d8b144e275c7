internal import EventLoop
internal import FoundationEssentials
internal import Reachability

/// The transport of libcurl: the kernel's sockets and clocks.
struct CurlTransport: SessionTransport {
    let probesServers = true
    let verifiesCertificates = true
    let handoverDelay: Int64 = 5_000_000
    var seed: UInt64 { .random(in: 0 ... .max) }

    func now() -> Int64 { MonotonicClock.now() }
    func date() -> Date { Date() }
    func sleep(for duration: Duration) async throws { try await Task.sleep(for: duration) }

    func makeEngine(
        _ network: EngineConfiguration, path: PathMonitor?
    ) throws(HTTPSessionError) -> any TransferEngine {
        try CurlEngine(network)
    }
}
