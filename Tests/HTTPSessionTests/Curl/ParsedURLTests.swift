import CCurl
import EventLoop
import Expectations
import Glibc
import Testing

@testable import HTTPSession

/// Compares the requests of a handle with a parsed URL (CURLOPT_CURLU) with those of a handle that has only the URL's text.
@Suite(.timeLimit(.minutes(5))) struct ParsedURLTests {
    private let heads: Locked<[String]>
    private let server: LoopbackListener

    init() throws {
        let heads = Locked<[String]>([])
        self.heads = heads
        server = try LoopbackListener { client, _ in
            var received: [UInt8] = []
            var buffer = [UInt8](repeating: 0, count: 4_096)
            while case let count = recv(client, &buffer, buffer.count, 0), count > 0 {
                received += buffer.prefix(count)
                guard received.suffix(4) == Array("\r\n\r\n".utf8) else { continue }
                heads.withLock { $0.append(String(decoding: received, as: UTF8.self)) }
                received = []
                LoopbackListener.respond("", to: client)
            }
        }
    }

    private static let urls = [
        "http://a.test", "http://a.test?x=1", "http://a.test/a/../b/./c", "http://A.TEST:80/", "http://a.test:8080//x//",
        "http://a.test/%7Euser/%2e%2e/x", "http://a.test/;p=1?q=a/b?c", "http://a.test/?", "http://a.test/x?", "http://a.test./",
        "http://xn--bcher-kva.test/", "http://b\u{FC}cher.test/", "http://[::1]:99/", "http://[fe80::1%25lo]/", "HTTP://a.test/",
        "http://a.test/a%20b?c=%C3%A9", "http://a.test/|\\^`", "http://127.1/", "http://0x7f.1/x", "http://a.test/x?y#z",
        "http://a.test/\u{E9}?\u{E9}", "http://a.test:080/", "http:/a.test/", "http:///a.test/", "http://a.test/..",
        "http://%61.test/",
    ]

    /// Requests each URL twice on one handle, all connections to the server.
    ///
    /// - Returns: The result and the head of each request.
    private func requests(overProxy: Bool, set: (EasyHandle, String) throws -> Void) throws -> [String] {
        let handle = try EasyHandle()
        defer { handle.cleanUp() }
        let places = try LineList(["::127.0.0.1:\(server.port)"])
        var results: [String] = []
        for url in ParsedURLTests.urls.flatMap({ [$0, $0] }) {
            handle.reset()
            for number in 0..<2 {
                if number == 0 {
                    try handle.set(CURLOPT_NOSIGNAL, true)
                    try handle.set(CURLOPT_PROXY, overProxy ? "http://127.0.0.1:\(server.port)" : "")
                    try handle.set(CURLOPT_NOPROXY, "")
                    if !overProxy { try handle.set(CURLOPT_CONNECT_TO, pointer: places.raw) }
                }
                try set(handle, url)
                let code = curl_easy_perform(handle.raw)
                results.append("\(url) \(code.rawValue) \(heads.withLock { heads in defer { heads = [] }; return heads })")
            }
        }
        return results
    }

    @Test(arguments: [false, true])
    func `a parsed URL gives the same requests and errors as its text, also to a proxy`(overProxy: Bool) throws {
        let expected = try requests(overProxy: overProxy) { try $0.set(CURLOPT_URL, $1) }
        try expectEqual(requests(overProxy: overProxy) { try $0.set(url: $1) }, expected)
        // Some are no URLs; the others reach the server.
        #expect(expected.count { $0.contains(" 0 [\"GET ") } > expected.count / 2)
    }

    @Test func `a URL that cannot be parsed replaces the one before`() throws {
        let handle = try EasyHandle()
        defer { handle.cleanUp() }
        try handle.set(CURLOPT_PROXY, "")
        try handle.set(url: "http://127.0.0.1:\(server.port)/1")
        expectEqual(curl_easy_perform(handle.raw), CURLE_OK)
        for text in ["http://a.test:99999/", "http://", "none://a.test/"] {
            try handle.set(url: text)
            #expect(curl_easy_perform(handle.raw) != CURLE_OK, "\(text)")
        }
        try handle.set(url: "http://127.0.0.1:\(server.port)/2")
        expectEqual(curl_easy_perform(handle.raw), CURLE_OK)
        expectEqual(heads.withLock { $0.map { $0.prefix(6) } }, ["GET /1", "GET /2"])
    }
}
