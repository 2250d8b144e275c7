import Expressions

@testable import Reachability

extension FuzzDriver {
    /// Expectations of users, compared with a response. The first line has statuses, the second line an expression, and the other
    /// lines the response.
    static let expectation = FuzzDriver(name: "expectation") { input in
        let lines = input.split(separator: UInt8(ascii: "\n"), maxSplits: 2, omittingEmptySubsequences: false)
        var expectation = HTTPExpectation()
        do {
            let statuses = try StatusRanges(String(decoding: lines[0], as: UTF8.self))
            let isSame = try StatusRanges(statuses.description) == statuses
            try require(isSame, "\(statuses) is not parsed again")
            try require(!statuses.contains(99) && !statuses.contains(600), "\(statuses) has invalid codes")
            expectation.statuses = statuses
        } catch let error as StatusRanges.ParseError {
            try checkReason(error.description)
        }
        guard lines.count > 1 else { return }
        do {
            let expression = try Expression(String(decoding: lines[1], as: UTF8.self))
            expectation.body = expression
            expectation.fields = [.init("Server", expression), .init("a", expression, isExcluded: true)]
        } catch let error as Expression.ParseError {
            try checkReason(error.description)
        }
        let literal = String(decoding: lines[1].prefix(256), as: UTF8.self)
        let quoted = try Expression(literal: literal)
        try require(quoted.matches(Array("x\(literal)y".utf8)), "the quoted literal \(literal.debugDescription) does not match")
        expectation.json = [("/a/0", .exists(true)), ("", .matches(quoted))].compactMap { JSONExpectation($0, $1) }
        guard lines.count > 2 else { return }
        var exchange = HTTPExchange(method: "GET")
        exchange.receive(lines[2])
        exchange.endOfInput()
        guard let mismatch = expectation.mismatch(of: exchange) else { return }
        try require(exchange.head != nil, "a mismatch without a head")
        try require(mismatch.expectation.unicodeScalars.count <= ExternalText.valueLength + 1, "a long expectation")
    }
}
