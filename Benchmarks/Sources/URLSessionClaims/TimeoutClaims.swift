import Foundation
import FoundationNetworking
import HTTPSessionTestKit

extension Claim {
    static let timeouts: [Claim] = [
        Claim(
            name: "timeout-resource", text: "`timeoutIntervalForResource` is not enforced",
            source: "URLSessionConfiguration.swift (only stored)"
        ) {
            // Bytes keep coming, so that only the resource's timeout can end it.
            let server = try TestServer { _ in StubResponse(body: .pattern(40)).pieces(of: 1, after: .delay(.milliseconds(100))) }
            let configuration = URLSessionConfiguration.ephemeral
            configuration.timeoutIntervalForResource = 1
            let exchange = Exchange.data(URLRequest(url: server.url("/")), configuration: configuration)
            return Finding(
                exchange.error == nil && exchange.data.count == 40,
                "asked for 1 s; ended after \(tenths(exchange)) s with \(exchange.data.count) of 40 bytes, \(exchange.errorText)")
        },
        Claim(
            name: "timeout-request", text: "A request timeout of 0.5 s is truncated to 0 s, with which a task fails at once",
            source: "HTTPURLProtocol.swift:411-414"
        ) {
            let server = try TestServer { _ in StubResponse(body: "late").delayed(.seconds(4)) }
            var request = URLRequest(url: server.url("/"))
            request.timeoutInterval = 0.5
            let exchange = Exchange.data(request)
            return Finding(
                exchange.error != nil && exchange.duration < .milliseconds(400),
                "asked for 0.5 s; ended after \(tenths(exchange)) s, \(exchange.errorText)")
        },
        Claim(
            name: "timeout-request-1.9", text: "A request timeout of 1.9 s is truncated to 1 s",
            source: "HTTPURLProtocol.swift:411-414"
        ) {
            let server = try TestServer { _ in StubResponse(body: "late").delayed(.seconds(6)) }
            var request = URLRequest(url: server.url("/"))
            request.timeoutInterval = 1.9
            let exchange = Exchange.data(request)
            return Finding(
                exchange.duration < .milliseconds(1800),
                "asked for 1.9 s; ended after \(tenths(exchange)) s, \(exchange.errorText)")
        },
    ]

    private static func tenths(_ exchange: Exchange) -> String {
        exchange.isOver ? String(format: "%.1f", exchange.duration / .seconds(1)) : "more than 20"
    }
}
