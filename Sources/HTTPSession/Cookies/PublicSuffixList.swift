internal import Glibc

/// The public suffixes: domains such as `co.uk`, under which different owners have names (publicsuffix.org).
///
/// libpsl has the list. Debian's libcurl depends on it, so it is in every process that has this library; it has no header at build time. Without
/// libpsl, every domain without a dot counts as a public suffix.
enum PublicSuffixList {
    private typealias Latest = @convention(c) (UnsafePointer<CChar>?) -> OpaquePointer?
    private typealias IsPublicSuffix = @convention(c) (OpaquePointer?, UnsafePointer<CChar>?) -> CInt

    // Unchecked: the list is never changed or freed after it is read, and libpsl's function only reads it.
    private struct Functions: @unchecked Sendable {
        /// The list: the newest of those of the system and of libpsl.
        let list: OpaquePointer
        let isPublicSuffix: IsPublicSuffix
    }

    private static let functions: Functions? = {
        guard let latest = symbol("psl_latest"), let isPublicSuffix = symbol("psl_is_public_suffix"),
            let list = unsafeBitCast(latest, to: Latest.self)(nil)
        else { return nil }
        return Functions(list: list, isPublicSuffix: unsafeBitCast(isPublicSuffix, to: IsPublicSuffix.self))
    }()

    /// A function of libpsl, which libcurl has loaded.
    private static func symbol(_ name: String) -> UnsafeMutableRawPointer? { dlsym(nil, name) }

    /// Whether the list is known. The first call reads the system's file, so a store makes it before a session's thread needs the list.
    static var isKnown: Bool { functions != nil }

    /// Whether a domain in lower case is a public suffix.
    static func contains(_ domain: [UInt8]) -> Bool {
        guard domain.contains(UInt8(ascii: ".")) else { return true }
        guard let functions else { return false }
        return String(decoding: domain, as: UTF8.self).withCString { functions.isPublicSuffix(functions.list, $0) != 0 }
    }
}
