import Wire

@testable import Reachability

extension FuzzDriver {
    /// URL references: values of `Location`, and URLs of users.
    static let url = FuzzDriver(name: "url") { input in
        let reference = URLReference(bytes: HTTPGrammar.trimmed(input[...]))
        for base in ["http://host.example/a/b/c?d", "https://[2001:db8::1]:8443", "http://192.0.2.1/?q"] {
            let base = try HTTPURL(base)
            do {
                let resolved = try base.resolving(input[...])
                try checkURL(resolved)
                if reference.scheme == nil, reference.authority == nil {
                    try require(resolved.hasSameOrigin(as: base), "a relative reference leads to \(resolved)")
                }
            } catch let error as HTTPURL.ParseError {
                try checkReason(error.description)
            }
        }
        let normalized = URLReference.removingDotSegments(reference.path)
        let again = URLReference.removingDotSegments(normalized)
        try require(normalized == again, "dot segments: \(normalized) becomes \(again)")
        let text = String(decoding: input, as: UTF8.self)
        do {
            try checkURL(try HTTPURL(text))
        } catch let error as HTTPURL.ParseError {
            try checkReason(error.description)
        }
        guard let endpoint = try? Endpoint(text) else { return }
        try require((try? Endpoint(endpoint.description)) == endpoint, "the endpoint \(endpoint) is not parsed again")
    }

    /// The rules for a URL that a probe requests.
    static func checkURL(_ url: HTTPURL) throws {
        let isTarget = url.target.utf8.first == UInt8(ascii: "/") && url.target.utf8.allSatisfy { (0x21...0x7E).contains($0) }
        try require(isTarget, "the target is \(url.target.debugDescription)")
        try require(url.authority.utf8.allSatisfy { (0x21...0x7E).contains($0) }, "authority: \(url.authority.debugDescription)")
        let text = url.description
        guard text.utf8.count <= HTTPLimit.location.value, !text.contains("%25") else { return }
        do {
            let again = try HTTPURL(text)
            try require(again.description == text, "\(text) becomes \(again)")
        } catch let error as HTTPURL.ParseError {
            throw BrokenRule(description: "\(text) is not parsed again: \(error)")
        }
    }

    /// The rule for a sentence that quotes input: one line of limited length.
    static func checkReason(_ text: String) throws {
        let isClean = text.unicodeScalars.allSatisfy { $0.properties.generalCategory != .control }
        try require(isClean && !text.isEmpty && text.unicodeScalars.count <= 512, "reason: \(text.debugDescription)")
    }
}
