import Foundation
import FoundationNetworking
import HTTPSessionTestKit

extension Claim {
    static let reports: [Claim] = [
        Claim(
            name: "metrics", text: "Metrics are never collected: the delegate is not called",
            source: "URLSessionTaskMetrics.swift (no users)"
        ) {
            let server = try TestServer { _ in StubResponse(body: "x") }
            let exchange = Exchange.data(URLRequest(url: server.url("/")))
            usleep(200_000)
            return Finding(
                !exchange.observer.seen.hasMetrics,
                "a task with status \(exchange.response?.statusCode ?? 0); didFinishCollecting was \(exchange.observer.seen.hasMetrics ? "" : "not ")called"
            )
        },
        Claim(
            name: "offline", text: "Without a route the error is not `notConnectedToInternet` (-1009)",
            source: "MultiHandle.swift:365-393",
            wrapper: ["unshare", "--map-root-user", "--net"]
        ) {
            // 198.51.100.0/24 is for documentation (RFC 5737), and this network namespace has no route to it: connect(2) fails at
            // once.
            let exchange = Exchange.data(try URLRequest(url: documentation()))
            return Finding((exchange.error as? URLError)?.code != .notConnectedToInternet, exchange.errorText)
        },
        Claim(
            name: "refused", text: "A refused connection is `cannotConnectToHost` (-1004)", source: "MultiHandle.swift:365-393"
        ) {
            let server = try TestServer { _ in StubResponse() }
            let url = server.url("/")
            server.stop()
            let exchange = Exchange.data(URLRequest(url: url))
            return Finding((exchange.error as? URLError)?.code == .cannotConnectToHost, exchange.errorText)
        },
        Claim(
            name: "cut", text: "A connection cut in the body is not `networkConnectionLost` (-1005)",
            source: "MultiHandle.swift:365-393"
        ) {
            let server = try TestServer { _ in StubResponse(body: .pattern(1000)).cut(afterBodyBytes: 500) }
            let exchange = Exchange.data(URLRequest(url: server.url("/")))
            return Finding(
                (exchange.error as? URLError)?.code != .networkConnectionLost,
                "\(exchange.errorText) after \(exchange.data.count) of 1000 bytes")
        },
        Claim(
            name: "disposition", text: "The disposition `.cancel` for a response is ignored",
            source: "URLSessionTask.swift:1086-1089"
        ) {
            let server = try TestServer { _ in StubResponse(body: .pattern(100_000)) }
            let exchange = Exchange.data(URLRequest(url: server.url("/")), observer: Observer(disposition: .cancel))
            return Finding(
                exchange.data.count == 100_000, "\(exchange.data.count) of 100000 bytes delivered, \(exchange.errorText)")
        },
        Claim(
            name: "proxy", text: "`connectionProxyDictionary` is not applied", source: "EasyHandle.swift:305-307"
        ) {
            // A proxy that answers itself: nothing arrives at it.
            let proxy = try TestServer { _ in StubResponse(502) }
            let server = try TestServer { _ in StubResponse(body: "x") }
            let configuration = URLSessionConfiguration.ephemeral
            configuration.connectionProxyDictionary = [
                "HTTPEnable": 1, "HTTPProxy": "127.0.0.1", "HTTPPort": Int(proxy.port),
            ]
            let exchange = Exchange.data(URLRequest(url: server.url("/")), configuration: configuration)
            return Finding(
                proxy.requests.isEmpty && exchange.response?.statusCode == 200,
                "\(proxy.requests.count) requests to the proxy, status \(exchange.response?.statusCode ?? 0)")
        },
    ]

    private static func documentation() throws -> URL {
        guard let url = URL(string: "http://198.51.100.1/") else { throw URLError(.badURL) }
        return url
    }
}
