/// A file that pages load: the style sheet or the script.
struct PageAsset: Hashable, Sendable {
    /// The path of the file on the server.
    let path: StaticPath
    let contentType: String
    let bytes: [UInt8]
    /// A hash of the content. Addresses contain it, so that a browser may keep the file forever.
    let tag: String

    /// The path of an asset.
    enum StaticPath: String, Hashable, Sendable {
        case style = "/style.css"
        case script = "/script.js"
    }

    static let style = PageAsset(.style, "text/css; charset=utf-8", PackageResources.style_css)
    static let script = PageAsset(.script, "text/javascript; charset=utf-8", PackageResources.script_js)
    static let all = [style, script]

    init(_ path: StaticPath, _ contentType: String, _ bytes: [UInt8], tag: String) {
        (self.path, self.contentType, self.bytes, self.tag) = (path, contentType, bytes, tag)
    }

    private init(_ path: StaticPath, _ contentType: String, _ bytes: [UInt8]) {
        // FNV-1a.
        let hash = bytes.reduce(0xcbf2_9ce4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
        self.init(path, contentType, bytes, tag: String(hash, radix: 36))
    }

    /// The address of this version of the file.
    var address: PageAddress {
        switch path {
        case .style: PageAddress("/style.css", query: [("v", tag)])
        case .script: PageAddress("/script.js", query: [("v", tag)])
        }
    }
}

/// The header fields of every answer that a browser may show.
enum PageHeaders {
    /// The policy for pages (Content Security Policy Level 3): nothing but files of this service.
    static let contentSecurityPolicy =
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; "
        + "base-uri 'none'; frame-ancestors 'none'"

    static let all: [(name: String, value: String)] = [
        ("Content-Security-Policy", contentSecurityPolicy), ("X-Content-Type-Options", "nosniff"),
        ("Referrer-Policy", "no-referrer"), ("Cross-Origin-Opener-Policy", "same-origin"),
        ("Cross-Origin-Resource-Policy", "same-origin"), ("X-Frame-Options", "DENY"),
    ]
}
