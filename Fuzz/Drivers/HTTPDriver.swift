import Pacing
import Wire

@testable import Reachability

extension FuzzDriver {
    /// Responses of HTTP/1.1: heads, chunks and bodies, in pieces of any size.
    static let http = FuzzDriver(name: "http") { input in
        var random = randomNumbers(for: input)
        try checkResponse(input, &random)
    }

    /// Long responses of HTTP/1.1: the last bytes of the input are repeated up to the limits. A long response costs the time of a
    /// hundred short ones.
    static let httpLimits = FuzzDriver(name: "http-limits") { input in
        guard !input.isEmpty else { return }
        var random = randomNumbers(for: input)
        let end = Array(repeatElement(input.suffix(64), count: 1100).joined())
        let long = input + end
        let (complete, inPieces) = try (
            exchange("GET", [long[...]], of: long.count), exchange("GET", pieces(of: long, &random), of: long.count)
        )
        try require(isEqual(complete, inPieces), "pieces: \(inPieces.facts) instead of \(complete.facts)")
        if Int.random(in: 0..<64, using: &random) == 0 { try repeatUntilEnd(input, end) }
    }

    private static func checkResponse(_ input: [UInt8], _ random: inout SplitMix64) throws {
        for method in ["GET", "HEAD"] {
            let complete = try exchange(method, [input[...]], of: input.count)
            let inPieces = try exchange(method, pieces(of: input, &random), of: input.count)
            try require(isEqual(complete, inPieces), "\(method): pieces: \(inPieces.facts) instead of \(complete.facts)")
            var discarding = HTTPExchange(method: method, keepsBody: false)
            discarding.receive(input)
            discarding.endOfInput()
            try require(discarding.facts == complete.facts && discarding.body.isEmpty, "\(method): without the body")
            try followRedirects(complete, method)
        }
    }

    private static func isEqual(_ left: HTTPExchange, _ right: HTTPExchange) -> Bool {
        left.progress == right.progress && left.head == right.head && left.body == right.body && left.facts == right.facts
    }

    private static func exchange(_ method: String, _ pieces: [ArraySlice<UInt8>], of count: Int) throws -> HTTPExchange {
        var exchange = HTTPExchange(method: method)
        for piece in pieces {
            // A copy of an exchange that still collects bytes would make each piece copy them.
            let ended = exchange.isEnded ? exchange : nil
            exchange.receive(piece)
            try require(ended.map { isEqual($0, exchange) } ?? true, "bytes after the end change the result")
        }
        try checkCounts(exchange, of: count)
        exchange.endOfInput()
        try require(exchange.isEnded, "the exchange waits after the end of input")
        try checkCounts(exchange, of: count)
        return exchange
    }

    private static func checkCounts(_ exchange: HTTPExchange, of count: Int) throws {
        let facts = exchange.facts
        try require(facts.receivedBytes <= count, "more bytes than arrived: \(facts)")
        try require(facts.bodyBytes <= facts.receivedBytes, "more bytes of the body than of the response: \(facts)")
        try require(exchange.body.count == min(facts.bodyBytes, exchange.keptLimit), "kept bytes: \(exchange.body.count)")
        try require(facts.bodyBytes <= HTTPLimit.body.value, "body above the limit")
        try require(exchange.head?.fieldCount ?? 0 <= HTTPLimit.fields.value, "fields above the limit")
        try require((facts.failure == .limit) == (facts.limit != nil && facts.limit != .knownBody), "limit: \(facts)")
        if let status = facts.status { try require((200...999).contains(status), "status \(status)") }
        for text in [facts.reason, facts.location, facts.contentType, facts.server, facts.excerpt] {
            guard let text else { continue }
            let isClean = text.unicodeScalars.allSatisfy { $0.properties.generalCategory != .control }
            try require(isClean && text.unicodeScalars.count <= ExternalText.valueLength + 1, "text: \(text.debugDescription)")
        }
    }

    /// Answers every request with the same redirect.
    private static func followRedirects(_ exchange: HTTPExchange, _ method: String) throws {
        guard let head = exchange.head else { return }
        let first = try HTTPProbeRequest(method: method, url: try HTTPURL("http://user.example/a/b?c"))
        var request = first
        var redirects = Redirects(of: request)
        for _ in 0...HTTPLimit.redirects.value {
            guard case .follow(let next) = redirects.next(after: head, to: request) else { return }
            try checkURL(next.url)
            // Cookies are one field, and a GET has fewer fields than a POST.
            let isOneRequest = lines(of: next) <= lines(of: request) + 1 && lines(of: next) <= lines(of: first) + 1
            try require(isOneRequest, "a redirect adds lines to the request")
            request = next
        }
        throw BrokenRule(description: "more redirects than the limit allows")
    }

    private static func lines(of request: HTTPProbeRequest) -> Int { request.bytes().count { $0 == UInt8(ascii: "\n") } }

    /// Repeats the end of the input until the exchange ends, in two sizes of pieces.
    private static func repeatUntilEnd(_ input: [UInt8], _ end: [UInt8]) throws {
        let most =
            input.count + HTTPLimit.head.value + HTTPLimit.body.value + HTTPLimit.chunkFraming.value + HTTPLimit.trailers.value
        let exchanges = try [end[...], end.prefix(end.count / 1100 * 100)].map { piece in
            var exchange = HTTPExchange(method: "GET")
            exchange.receive(input)
            var count = input.count
            while !exchange.isEnded {
                try require(count <= most, "an endless response has no end: \(exchange.facts)")
                exchange.receive(piece)
                count += piece.count
            }
            try checkCounts(exchange, of: count)
            return exchange
        }
        try require(isEqual(exchanges[0], exchanges[1]), "pieces: \(exchanges[1].facts) instead of \(exchanges[0].facts)")
    }
}
