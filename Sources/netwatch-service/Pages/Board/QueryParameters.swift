/// The reason why a parameter is not used.
struct QueryProblem: Hashable, Sendable {
    var parameter: String
    /// One sentence without a final period.
    var detail: String
}

/// The parameters of a URL's query (WHATWG URL Standard, application/x-www-form-urlencoded). The text may be hostile.
struct QueryParameters: Hashable, Sendable {
    /// The maximum number of parameters; later ones are ignored.
    static let limit = 32
    /// The maximum number of bytes of a name or a value; the others are ignored.
    static let valueLimit = 4_096

    private var values: [String: [String]] = [:]
    /// The first parameter that is malformed or repeated; `nil` if there is none. A document refuses it, and a page names it.
    private(set) var problem: QueryProblem?

    /// Reads the text after the question mark. The first value of a name counts.
    ///
    /// - Parameters:
    ///   - query: the text.
    ///   - list: the name of a parameter that may be set several times.
    ///   - limit: the maximum number of parameters.
    init(_ query: some StringProtocol, list: String? = nil, limit: Int = limit) {
        let parts = query.utf8.split(separator: UInt8(ascii: "&"))
        for part in parts.prefix(limit) {
            let pair = part.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
            guard let name = pair.first else { continue }
            let value = pair.count > 1 ? Self.decoded(pair[1], isForm: true) : ""
            let key = Self.decoded(name, isForm: true)
            let isFurther = values[key] != nil && key != list
            if let detail = isFurther ? "is set more than once" : pair.lazy.compactMap({ Self.problem(of: $0) }).first {
                note(key, detail)
            }
            if !isFurther { values[key, default: []].append(value) }
        }
        if parts.count > limit { note("?", "there are more than \(limit) parameters") }
    }

    private mutating func note(_ parameter: String, _ detail: String) {
        if problem == nil { problem = QueryProblem(parameter: parameter, detail: detail) }
    }

    /// Returns why encoded bytes are no text; `nil` if they are.
    private static func problem(of bytes: some Collection<UInt8>) -> String? {
        guard bytes.count <= valueLimit else { return "is longer than \(valueLimit) bytes" }
        var remaining = bytes[...]
        while let percent = remaining.firstIndex(of: UInt8(ascii: "%")) {
            remaining = remaining[percent...].dropFirst()
            guard remaining.prefix(2).compactMap(digit).count == 2 else { return "a percent sign needs two hexadecimal digits" }
        }
        return String(validating: decodedBytes(bytes, isForm: true), as: UTF8.self) == nil ? "is not UTF-8" : nil
    }

    /// Returns the value of a parameter; `nil` if it is missing.
    subscript(name: String) -> String? { values[name]?.first }

    /// Returns all values of a parameter, in their order.
    func all(_ name: String) -> [String] { values[name] ?? [] }

    /// Returns the text of percent-encoded bytes. Sequences that are not valid stay as they are; bytes that are not UTF-8 become U+FFFD.
    static func decoded(_ bytes: some Collection<UInt8>, isForm: Bool = false, limit: Int = valueLimit) -> String {
        String(decoding: decodedBytes(bytes, isForm: isForm, limit: limit), as: UTF8.self)
    }

    private static func decodedBytes(_ bytes: some Collection<UInt8>, isForm: Bool, limit: Int = valueLimit) -> [UInt8] {
        var decoded: [UInt8] = []
        var iterator = bytes.prefix(limit).makeIterator()
        var pending: [UInt8] = []
        func next() -> UInt8? { pending.isEmpty ? iterator.next() : pending.removeFirst() }
        while let byte = next() {
            switch byte {
            case UInt8(ascii: "+") where isForm: decoded.append(UInt8(ascii: " "))
            case UInt8(ascii: "%"):
                guard let high = next() else {
                    decoded.append(byte)
                    continue
                }
                guard let upper = digit(high) else {
                    decoded.append(byte)
                    pending = [high] + pending
                    continue
                }
                guard let low = next() else {
                    decoded += [byte, high]
                    continue
                }
                guard let lower = digit(low) else {
                    decoded += [byte, high]
                    pending = [low] + pending
                    continue
                }
                decoded.append(upper << 4 | lower)
            default: decoded.append(byte)
            }
        }
        return decoded
    }

    private static func digit(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}

/// The path of a target's page: `/target/KEY`, with the percent-encoded key as its last segment.
enum TargetPath {
    static let prefix = "/target/"
    /// The maximum length of an encoded key.
    static let limit = 65_536

    /// Returns the key of a path; `nil` if it is the path of something else.
    static func key(ofPath path: some StringProtocol) -> String? {
        guard path.utf8.starts(with: prefix.utf8) else { return nil }
        let segment = path.utf8.dropFirst(prefix.utf8.count)
        guard !segment.isEmpty, !segment.contains(UInt8(ascii: "/")), segment.count <= limit else { return nil }
        return QueryParameters.decoded(segment, limit: limit)
    }
}
