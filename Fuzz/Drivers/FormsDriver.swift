import ByteComparison
import FoundationEssentials
import HTTPTypes
import Pacing

@testable import HTTPSession
@testable import Reachability

extension FuzzDriver {
    /// Texts that Swift takes for equal (Unicode Standard Annex #15): the input, and the input with some of its characters in another form.
    /// Whatever is a key, a path or a value of the wire is equal only if its bytes are.
    static let forms = FuzzDriver(name: "forms") { input in
        var random = randomNumbers(for: input)
        let text = String(decoding: input.prefix(400), as: UTF8.self)
        let other = otherForm(of: text, &random)
        for (one, other) in [(text, text), (text, other), (other, text)] { try compare(one, other) }
    }

    private static let pairs: [(composed: String, decomposed: String)] = [
        ("\u{E9}", "e\u{301}"), ("\u{FC}", "u\u{308}"), ("\u{C5}", "A\u{30A}"), ("\u{212B}", "\u{C5}"), ("\u{212A}", "K"),
        ("\u{37E}", ";"), ("\u{1FEF}", "`"), ("\u{D55C}", "\u{1112}\u{1161}\u{11AB}"), ("\u{307}\u{323}", "\u{323}\u{307}"),
        ("\u{1E69}", "s\u{323}\u{307}"),
    ]

    /// The text with some of its characters in another form, and often with the same bytes.
    private static func otherForm(of text: String, _ random: inout SplitMix64) -> String {
        var scalars = Array(text.unicodeScalars)
        var index = 0
        while index < scalars.count {
            let found = pairs.lazy.flatMap { [($0.composed, $0.decomposed), ($0.decomposed, $0.composed)] }
                .map { (Array($0.0.unicodeScalars), Array($0.1.unicodeScalars)) }
                .first { scalars[index...].starts(with: $0.0) }
            guard let (form, replacement) = found, Bool.random(using: &random) else {
                index += 1
                continue
            }
            scalars.replaceSubrange(index..<(index + form.count), with: replacement)
            index += replacement.count
        }
        var result = String.UnicodeScalarView()
        result.append(contentsOf: scalars)
        return String(result)
    }

    private static func compare(_ one: String, _ other: String) throws {
        let isSame = Array(one.utf8) == Array(other.utf8)
        func check(_ name: String, _ isEqual: Bool, _ hashes: (Int, Int)? = nil) throws {
            try require(
                isEqual == isSame, "\(name): \(Array(one.utf8)) and \(Array(other.utf8)) are \(isEqual ? "equal" : "different")")
            if let hashes, isSame { try require(hashes.0 == hashes.1, "\(name): the hashes of equal values differ") }
        }
        func check<Value: Hashable>(_ name: String, _ make: (String) throws -> Value?) throws {
            guard let first = try make(one), let second = try make(other) else { return }
            try check(name, first == second, (first.hashValue, second.hashValue))
            try require(Set([first, second]).count == (isSame ? 1 : 2), "\(name): a set")
        }
        try check("isExactly", one.isExactly(other))
        try check("key") { ExactString($0) }
        guard let url = URL(string: "https://host.example/a"), let origin = Origin(url) else { return }
        try check("realm") { AuthenticationChallenge.ProtectionSpace(origin: origin, realm: $0) }
        try check("password") { Credential(user: "user", password: $0) }
        try check("token") { BearerToken($0) }
        try check("authorization") { HTTPProbeSettings.Authorization.bearer($0) }
        try check("entity tag") { text in StrongValidator(entityTag: "\"\(text)\"") }
        try checkRequests(one, other, url)
        try checkHead(one, other)
    }

    /// A request with another form of a field's value is not the one that was prepared.
    private static func checkRequests(_ one: String, _ other: String, _ url: URL) throws {
        guard let name = HTTPField.Name("X-Name") else { return }
        func field(_ text: String) -> HTTPField { HTTPField(name: name, value: text) }
        func bytes(_ text: String) -> [UInt8] { field(text).withUnsafeBytesOfValue { Array($0) } }
        func request(_ text: String) -> TransferRequest { TransferRequest(url: url, headerFields: HTTPFields([field(text)])) }
        let isShared = request(one).sharesPreparation(with: request(other))
        try require(isShared == (bytes(one) == bytes(other)), "a request is prepared as one with other bytes")
    }

    private static func checkHead(_ one: String, _ other: String) throws {
        guard !(one + other).utf8.contains(where: { $0 < 0x20 }) else { return }
        guard let head = ResponseHead(bytes: Array("HTTP/1.1 200 OK\r\nETag: |\(one)|\r\nETag: |\(other)|\r\n\r\n".utf8)) else {
            throw BrokenRule(description: "there is no head")
        }
        try require(head.hasDifferentValues(of: "etag") == !one.isExactly(other), "two lines of a field")
    }
}
