import ContentCodings

@testable import Reachability

extension FuzzDriver {
    /// Codings of content. The first line is the value of Content-Encoding, and the other bytes are the content.
    static let codings = FuzzDriver(name: "codings") { input in
        let lines = input.split(separator: UInt8(ascii: "\n"), maxSplits: 1, omittingEmptySubsequences: false)
        let content = lines.count > 1 ? Array(lines[1]) : []
        let codings: ContentCodings
        do { codings = try ContentCodings([lines[0]]) } catch let error as ContentCodings.Failure {
            guard case .unsupported = error else { throw BrokenRule(description: "\(error) before any content") }
            return
        }
        let limit = HTTPExchange.keptBytes
        let complete = try decode(codings, content, isComplete: true, limit: limit)
        let beginning = try decode(codings, content, isComplete: false, limit: limit)
        if let complete { try require(beginning == complete, "the end of the content changes the bytes before it") }
        let few = try decode(codings, content, isComplete: false, limit: 100)
        if let beginning { try require(few == Array(beginning.prefix(100)), "the limit changes the bytes before it") }
        // The same by way of a response.
        let response = Array("HTTP/1.1 200 OK\r\nContent-Encoding: ".utf8) + lines[0] + Array("\r\n\r\n".utf8) + content
        var exchange = HTTPExchange(method: "GET")
        exchange.receive(response)
        exchange.endOfInput()
        guard exchange.progress == .complete, exchange.body == content else { return }
        try require((try? exchange.decodedBody()) == complete, "the body of a response is decoded differently")
    }

    private static func decode(_ codings: ContentCodings, _ content: [UInt8], isComplete: Bool, limit: Int) throws -> [UInt8]? {
        do {
            let bytes = try codings.decode(content, isComplete: isComplete, limit: limit)
            try require(bytes.count <= limit, "\(bytes.count) bytes above the limit")
            return bytes
        } catch let error as ContentCodings.Failure {
            if case .unsupported = error { throw BrokenRule(description: "a coding is unsupported after it was parsed") }
            if case .truncated = error { try require(isComplete, "the beginning of content is truncated") }
            return nil
        }
    }
}
