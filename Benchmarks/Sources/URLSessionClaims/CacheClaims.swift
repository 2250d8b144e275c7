import Foundation
import FoundationNetworking
import HTTPSessionTestKit

extension Claim {
    static let cache: [Claim] = [
        Claim(
            name: "cache-stores", text: "A response with `Cache-Control: max-age=3600` is never stored",
            source: "HTTPURLProtocol.swift:538-543; URLProtocol.swift:154"
        ) {
            let (server, cache, configuration) = try cachingSession()
            let observer = Observer()
            let request = URLRequest(url: server.url("/a"))
            _ = Exchange.data(request, configuration: configuration, observer: observer)
            let second = Exchange.data(request, configuration: configuration)
            let isStored = cache.cachedResponse(for: request) != nil
            return Finding(
                !isStored && server.requests.count == 2,
                "2 tasks, \(server.requests.count) requests, the second answered \(String(decoding: second.data, as: UTF8.self)); "
                    + "URLCache has \(isStored ? "a" : "no") response; willCacheResponse was \(observer.seen.willCacheWasCalled ? "" : "not ")called"
            )
        },
        Claim(
            name: "cache-stores-handler", text: "The same with a completion handler", source: "URLSessionTask.swift:1154-1170"
        ) {
            let (server, cache, configuration) = try cachingSession()
            let session = URLSession(configuration: configuration)
            let request = URLRequest(url: server.url("/a"))
            for _ in 0..<2 {
                let end = DispatchSemaphore(value: 0)
                session.dataTask(with: request) { _, _, _ in end.signal() }.resume()
                _ = end.wait(timeout: .now() + 20)
            }
            let isStored = cache.cachedResponse(for: request) != nil
            return Finding(
                !isStored && server.requests.count == 2,
                "2 tasks, \(server.requests.count) requests; URLCache has \(isStored ? "a" : "no") response")
        },
        Claim(
            name: "cache-policy", text: "`returnCacheDataDontLoad` goes to the network",
            source: "URLSessionConfiguration.swift:129-136"
        ) {
            let (server, _, configuration) = try cachingSession()
            var request = URLRequest(url: server.url("/a"))
            request.cachePolicy = .returnCacheDataDontLoad
            let exchange = Exchange.data(request, configuration: configuration)
            return Finding(!server.requests.isEmpty, "\(server.requests.count) request; \(exchange.errorText)")
        },
    ]

    private static func cachingSession() throws -> (TestServer, URLCache, URLSessionConfiguration) {
        let server = try TestServer { request in
            StubResponse(
                fields: ["Cache-Control": "max-age=3600, public", "ETag": "\"1\"", "Date": "\(httpDate())"],
                body: .text("answer \(request.arrival)"))
        }
        let configuration = URLSessionConfiguration.default
        let cache = URLCache(memoryCapacity: 1 << 20, diskCapacity: 0, diskPath: nil)
        configuration.urlCache = cache
        configuration.requestCachePolicy = .useProtocolCachePolicy
        return (server, cache, configuration)
    }

    private static func httpDate() -> String {
        let format = DateFormatter()
        format.locale = Locale(identifier: "en_US_POSIX")
        format.timeZone = TimeZone(secondsFromGMT: 0)
        format.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
        return format.string(from: Date())
    }
}
