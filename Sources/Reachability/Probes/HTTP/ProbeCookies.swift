internal import ByteComparison
internal import Wire

/// The cookies that a server sets by its redirects (RFC 6265). Only the requests of the same probe to the same host have them.
///
/// The attributes Path, Domain and Expires are ignored: a probe ends after a few requests. Cookies with Secure are sent over https
/// only.
struct ProbeCookies: Hashable, Sendable {
    /// The maximum number of cookies, and of bytes of one cookie.
    private static let limit = (count: 50, bytes: 4096)

    private struct Cookie: Hashable, Sendable {
        @ExactString private(set) var name: String
        @ExactString private(set) var value: String
        let isSecure: Bool
    }

    private var cookies: [Cookie] = []

    /// Stores the cookies of a response.
    mutating func store(from head: HTTPResponseReader.Head) {
        for value in head.values(of: "set-cookie") {
            guard value.count <= Self.limit.bytes, value.allSatisfy({ HTTPGrammar.isValueByte($0) && $0 < 0x80 }) else {
                continue
            }
            let parts = value.split(separator: UInt8(ascii: ";"), omittingEmptySubsequences: false)
            guard let pair = parts.first, let sign = pair.firstIndex(of: UInt8(ascii: "=")) else { continue }
            let name = Self.text(pair[..<sign])
            guard !name.isEmpty else { continue }
            let isSecure = parts.dropFirst().contains { HTTPGrammar.isName(HTTPGrammar.trimmed($0), "secure") }
            let cookie = Cookie(name: name, value: Self.text(pair[(sign + 1)...]), isSecure: isSecure)
            if let index = cookies.firstIndex(where: { $0.name.isExactly(name) }) {
                cookies[index] = cookie
            } else if cookies.count < Self.limit.count {
                cookies.append(cookie)
            }
        }
    }

    /// Returns the value of the field `Cookie` for a URL, after the cookies that the user has set; `nil` if there are none.
    func field(for url: HTTPURL, after own: String?) -> String? {
        let sent = cookies.filter { url.scheme == .https || !$0.isSecure }.map { "\($0.name)=\($0.value)" }
        let all = (own.map { [$0] } ?? []) + sent
        return all.isEmpty ? nil : all.joined(separator: "; ")
    }

    private static func text(_ bytes: ArraySlice<UInt8>) -> String {
        String(decoding: HTTPGrammar.trimmed(bytes), as: UTF8.self)
    }
}
