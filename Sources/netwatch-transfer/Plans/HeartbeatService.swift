import Console
import FoundationEssentials

/// The service that receives the reports of jobs.
enum HeartbeatService: Hashable, Sendable {
    /// The base of the URLs, without a slash at its end.
    case url(String)
    /// The path of a Unix socket.
    case socket(String)
    /// The service of this machine: the socket of the system, or else that of the user.
    case local

    /// The socket of the system's service.
    private static let systemSocket = "/run/netwatch/api.sock"

    /// Reads the value of `--service`, or of a variable of the environment; `nil` for the service of this machine.
    ///
    /// - Throws: ``Failure`` with code 64 for a value that is neither a URL nor an absolute path. `place` is its option or variable.
    init(_ text: String?, place: String) throws(Failure) {
        guard let text else {
            self = .local
            return
        }
        if text.hasPrefix("/") {
            guard text.utf8.count <= 107, !text.utf8.contains(0) else {
                throw .usage(place, "the path of a socket has at most 107 bytes")
            }
            self = .socket(text)
            return
        }
        guard text.contains("://") else {
            throw .usage(place, "write http://HOST:PORT, https://HOST, or the absolute path of the service's socket")
        }
        let url: URL
        do { url = try TransferAddress.url(text) } catch { throw .usage(place, error.message) }
        guard url.user(percentEncoded: true) == nil, url.password(percentEncoded: true) == nil else {
            throw .usage(place, "the URL has a user; the service takes a token, see --token-file")
        }
        guard url.query(percentEncoded: true) == nil, url.fragment(percentEncoded: true) == nil else {
            throw .usage(place, "the URL ends with its path: it has neither '?' nor '#'")
        }
        var base = url.absoluteString
        while base.hasSuffix("/") { base.removeLast() }
        self = .url(base)
    }

    /// The text that waiting reports are kept under. A later run has the same one for the same service.
    var identity: String {
        switch self {
        case .url(let base): base
        case .socket(let path): "unix:\(path)"
        case .local: "local"
        }
    }

    /// The service for people. `socket` is the one that is used.
    func place(_ socket: String?) -> String {
        if case .url(let base) = self { return ShortURL.text(base) }
        return socket ?? identity
    }

    /// The sockets of which the first that accepts a connection is used; empty for a URL.
    func sockets(_ environment: [String: String]) -> [String] {
        switch self {
        case .url: return []
        case .socket(let path): return [path]
        case .local:
            let user = environment["XDG_RUNTIME_DIR"].flatMap { $0.hasPrefix("/") ? "\($0)/netwatch/api.sock" : nil }
            return [Self.systemSocket] + [user].compactMap { $0 }
        }
    }

    /// Whether the connection has no TLS.
    var isPlain: Bool {
        switch self {
        case .url(let base): base.lowercased().hasPrefix("http:")
        case .socket, .local: true
        }
    }

    /// Returns the URL of a path with its query.
    func url(of target: String) -> URL? {
        switch self {
        case .url(let base): URL(string: base + target)
        case .socket, .local: URL(string: "http://localhost\(target)")
        }
    }
}
