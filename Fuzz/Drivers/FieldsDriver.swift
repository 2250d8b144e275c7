import FoundationEssentials
import Wire

@testable import HTTPSession

extension FuzzDriver {
    /// Heads of responses, and the values of their fields, as a session parses them.
    static let fields = FuzzDriver(name: "fields") { input in
        let text = String(decoding: input, as: UTF8.self)
        try checkValue(text)
        try checkLocation(text)
        try checkLines(input)
        try checkCookie(input)
        guard let head = ResponseHead(bytes: input) else { return }
        try require((0...999).contains(head.statusCode), "status \(head.statusCode)")
        try checkHead(head)
        for name: StaticString in ["content-range", "retry-after", "content-disposition", "www-authenticate", "date", "etag"] {
            guard let value = head.firstValue(of: name) else { continue }
            try require(!value.utf8.contains { $0 == 0 || $0 == 0x0D || $0 == 0x0A }, "\(name): \(value.debugDescription)")
            try checkValue(value)
        }
    }

    private static func checkLocation(_ text: String) throws {
        guard let base = URL(string: "https://host.example/a/b?c"),
            case .success(let url) = RedirectRules.resolve(text, from: base, allowsInsecure: false)
        else { return }
        try require(Origin(url)?.scheme == "https", "\(text.debugDescription) leads to \(url)")
        let isVisible = url.absoluteString.utf8.allSatisfy { (0x21...0x7E).contains($0) }
        try require(isVisible, "\(text.debugDescription) leads to \(url.absoluteString.debugDescription)")
    }

    /// Assembles heads from lines, as libcurl delivers them.
    private static func checkLines(_ input: [UInt8]) throws {
        var reader = HeadAssembler()
        var start = 0
        while start < input.count {
            let end = input[start...].firstIndex(of: 0x0A).map { $0 + 1 } ?? input.count
            defer { start = end }
            do {
                let head = try input[start..<end].withUnsafeBytes { line in
                    _ = reader.begins(with: line)
                    return try reader.add(line)
                }
                guard let head else { continue }
                try require(head.bytes.count <= end, "a head of \(head.bytes.count) bytes")
                for method in ["GET", "HEAD"] {
                    guard case .length(let length)? = try? ResponseFraming(head, method: method) else { continue }
                    try require(length >= 0 && method == "GET", "a body of \(length) bytes")
                }
            } catch let error as HTTPSessionError {
                try require(error.code == .badServerResponse, "error: \(error)")
            }
        }
    }

    /// A `Set-Cookie` field: its cookie is read from its line of a file, and sent as stored.
    private static func checkCookie(_ input: [UInt8]) throws {
        guard let url = URL(string: "https://www.host.example/a/b"), let scope = CookieScope(url),
            let line = SetCookie(input, now: 1_700_000_000)?.line(
                for: scope, maySetSecure: true, isPublicSuffix: { $0.count < 8 })
        else { return }
        try require(line.bytes.count { $0 == 0x09 } == 6 && line.maySend, "the line \(line.text.debugDescription)")
        try require(Cookie(line: line.text) != nil, "the line \(line.text.debugDescription) is no cookie")
        let list = CookieList([line], now: 0)
        for sent in list.lines(for: scope, isSecure: true, at: 0) {
            try require(
                !sent.pair.contains { $0 < 0x20 || $0 == 0x7F || $0 == UInt8(ascii: ";") },
                "the pair of \(sent.text.debugDescription)")
        }
        let other = URL(string: "https://other.example/a/b").flatMap { CookieScope($0) }
        try require(other.map { list.lines(for: $0, isSecure: true, at: 0).isEmpty } != false, "a cookie for another host")
    }

    private static let now = Date(timeIntervalSince1970: 1_700_000_000)

    private static func checkHead(_ head: ResponseHead) throws {
        try require(head.httpResponse.headerFields == head.headerFields, "fields of the response")
        try require(!head.reasonPhrase.utf8.contains { $0 < 0x20 || $0 == 0x7F }, "reason: \(head.reasonPhrase.debugDescription)")
        if let length = head.bodyLength { try require(length >= 0, "length \(length)") }
        if let complete = head.completeRepresentation {
            try require(complete.statusCode == 200 && complete.firstValue(of: "content-range") == nil, "complete representation")
        } else {
            throw BrokenRule(description: "there is no complete representation")
        }
        guard let url = URL(string: "https://host.example/a") else { return }
        let rules = Resumption(completeResponse: head, from: url, now: now)
        for total in [nil, Int64(100), .max] {
            var resumption = Resumption(url: url, validator: .entityTag("\"a\""), total: total, digest: nil)
            guard let basis = resumption?.basis(at: url) else { continue }
            for received in [0, 100, Int64.max] {
                guard case .append(let complete)? = resumption?.decide(head, received: received, by: basis) else { continue }
                try require(complete > received && (total == nil || total == complete), "\(complete) bytes after \(received)")
            }
            resumption?.update(from: head, total: 7)
        }
        if let total = rules?.total { try require(total >= 0, "total \(total)") }
        _ = AuthenticationChallenge.all(in: head, from: Origin(scheme: "https", writtenHost: "host.example", port: 443))
        for key: StaticString in ["repr-digest", "upload-limit"] {
            if let members = head.structuredDictionary(of: key) { _ = UploadLimit(members) }
        }
    }

    private static func checkValue(_ text: String) throws {
        switch ContentRange(text) {
        case .satisfied(let first, let last, let total)?:
            try require(0 <= first && first <= last && total.map { last < $0 } ?? true, "range: \(text)")
        case .unsatisfied(let total)?: try require(total >= 0, "range: \(text)")
        case nil: break
        }
        if let delay = RetryAfter.parse(text, now: now) { try require(delay >= 0, "delay \(delay)") }
        if let date = HTTPDate.parse(text, now: 1_700_000_000) {
            try require(HTTPDate.parse(HTTPDate.format(date), now: 0) == date, "date: \(text)")
            try require(!HTTPDate.isCanonical(text) || HTTPDate.format(date) == text, "form of \(text)")
        }
        if let name = ContentDisposition.fileName(text) {
            let isOneComponent = !name.unicodeScalars.contains { $0 == "/" || $0 == "\\" }
            try require(isOneComponent && !["", ".", ".."].contains(name), "file name: \(name.debugDescription)")
        }
        let challenges = AuthenticateField.challenges(in: text)
        try require(challenges.count <= AuthenticateField.most, "\(challenges.count) challenges")
        try require(challenges.allSatisfy { !$0.scheme.isEmpty }, "a challenge without a scheme")
        if let type = MediaType(text) {
            try require(MediaType(type.description) == type, "media type: \(type.description.debugDescription)")
        }
        if case .bytes(let count) = ContentLength([text.utf8]) { try require(count >= 0, "length \(count)") }
        if case .integer(let number)? = StructuredField.item(text) {
            try require(abs(number) <= 999_999_999_999_999, "integer \(number)")
        }
        _ = StructuredField.dictionary(text)
        if let tag = StrongValidator(entityTag: text) {
            try require(!tag.fieldValue.utf8.contains { $0 <= 0x20 || $0 == 0x7F }, "tag: \(text.debugDescription)")
        }
        if let digest = ReprDigest.parse(text) { try require(ReprDigest.parse(text) == digest, "digest") }
    }
}
