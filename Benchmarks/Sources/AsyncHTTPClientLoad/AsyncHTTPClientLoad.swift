import AsyncHTTPClient
import NIOCore
import NIOHTTP1
import NIOSSL
import RequestLoad

/// `AsyncHTTPClientLoad URL COUNT CONCURRENCY [AUTHORITY]`: async-http-client used as its documentation shows, with as many connections as
/// requests at a time.
@main
struct AsyncHTTPClientLoad {
    static func main() async {
        guard let load = RequestLoad(CommandLine.arguments.dropFirst()) else {
            RequestLoad.usage("AsyncHTTPClientLoad URL COUNT CONCURRENCY [AUTHORITY]")
        }
        await RequestLoad.main {
            var configuration = HTTPClient.Configuration()
            configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = load.concurrency
            if let authority = load.authority {
                var tls = TLSConfiguration.makeClientConfiguration()
                tls.trustRoots = .file(authority)
                configuration.tlsConfiguration = tls
            }
            let client = HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
            let request = { @Sendable () async throws -> Int in
                let response = try await client.execute(HTTPClientRequest(url: load.url), timeout: .seconds(60))
                guard response.status == .ok else { throw UnexpectedStatus(code: Int(response.status.code)) }
                return try await response.body.collect(upTo: 1 << 20).readableBytes
            }
            try await load.warmUp(request)
            let result = try await load.run(request)
            try await client.shutdown()
            print(result)
        }
    }
}
