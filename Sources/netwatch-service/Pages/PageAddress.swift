import Console
import Wire

/// An address to which a page may lead: a path of this service with its query, or a URL of http or https.
struct PageAddress: Hashable, Sendable {
    /// The address: ASCII without spaces and quotation marks.
    let text: String

    /// Creates the address of a fixed path.
    init(_ path: StaticString) { text = path.description }

    private init(checked text: String) { self.text = text }

    /// Creates an address of this service.
    ///
    /// - Parameters:
    ///   - path: the fixed beginning of the path, such as `/target/`.
    ///   - segment: the last segment of the path, which is percent-encoded.
    ///   - query: the parameters. Those whose value is `nil` are omitted.
    init(_ path: StaticString, segment: String = "", query: [(name: StaticString, value: String?)] = []) {
        var text = path.description + PercentEncoding.encode(segment)
        var separator = "?"
        for (name, value) in query {
            guard let value else { continue }
            text += "\(separator)\(name)=\(PercentEncoding.encode(value))"
            separator = "&"
        }
        self.text = text
    }

    /// Creates the address of a page elsewhere; `nil` if the text is no URL of http or https in ASCII.
    init?(external url: String) {
        let lower = url.lowercased()
        guard lower.hasPrefix("https://") || lower.hasPrefix("http://"),
            url.utf8.allSatisfy({ 0x21..<0x7f ~= $0 && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "\\") })
        else { return nil }
        text = url
    }

    /// Returns the address with a parameter that is not in its query yet.
    func adding(_ name: StaticString, _ value: String) -> PageAddress {
        PageAddress(checked: text + (text.contains("?") ? "&" : "?") + "\(name)=\(PercentEncoding.encode(value))")
    }
}
