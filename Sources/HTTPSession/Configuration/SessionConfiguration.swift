public import FoundationEssentials
public import HTTPTypes
public import Logging
public import Reachability

/// How a session behaves: a value, read once when the session is made.
public struct SessionConfiguration: Sendable {
    // MARK: Addresses and transport

    /// Which hosts may be spoken to without TLS.
    public var insecureHTTP = InsecureHTTP.refused
    /// Which version of HTTP is asked for.
    public var httpVersion = HTTPVersion.automatic
    /// Connections to one host at a time, 1 to 1,000. Over HTTP/2, requests share a connection and this bounds connections only. Streams
    /// have a connection each, and leave one for all others where the host speaks HTTP/2.
    public var maximumConnectionsPerHost = 6
    /// Connections of the session at a time, and transfers under way, 1 to 10,000.
    public var maximumConnections = 256
    /// Name look-ups at a time, 1 to 64. Each takes a thread until the resolver answers or gives up, also when nobody waits any more.
    public var maximumConcurrentLookups = 8
    /// The way out.
    public var proxy = Proxy.environment
    /// Which address families may be used.
    public var addressFamily = AddressFamily.any
    /// The interface to send from (`SO_BINDTODEVICE`, which may need CAP_NET_RAW), by its name or, from Linux 5.5 on, an alternative name.
    public var interface: String?
    /// The path of a Unix socket that takes every connection (unix(7)); each carries one request.
    public var unixSocketPath: String?
    /// Addresses for names, which are then not looked up.
    public var hostOverrides: [HostOverride] = []
    /// The network namespace of the session's thread, and so of every connection of the session. Names are resolved by the C library
    /// inside it, but by the `resolv.conf` and `hosts` that this process sees: `/etc/netns/NAME` applies only to programs that
    /// `ip netns exec` starts.
    public var networkNamespace: NetworkNamespace?

    // MARK: Security

    /// Which servers are believed.
    public var securityPolicy = SecurityPolicy.default
    /// Which HTTPS proxies are believed: pins of servers do not judge them.
    public var proxySecurityPolicy = SecurityPolicy.default
    /// Who this client is, where a server asks for a certificate.
    public var clientIdentity: ClientIdentity?

    // MARK: Limits

    /// Name resolution, TCP and TLS together, for one attempt.
    public var connectTimeout = Duration.seconds(30)
    /// How long nothing may arrive or leave before an attempt ends.
    public var requestTimeout = Duration.seconds(60)
    /// A task's whole life, with every wait.
    public var resourceTimeout = Duration.seconds(7 * 24 * 3600)
    /// How long a handler of the user's (redirect, challenge, response, server trust) may take before the task ends with
    /// ``HTTPSessionError/Code/handlerTimedOut``.
    public var handlerTimeout = Duration.seconds(60)
    /// A transfer slower than this for the given time ends; whole seconds (`CURLOPT_LOW_SPEED_LIMIT`).
    public var lowSpeedLimit: LowSpeedLimit?
    /// Bytes a second that each transfer may receive (`CURLOPT_MAX_RECV_SPEED_LARGE`); `nil`: as fast as it comes. On average: a second's
    /// worth, or 100 KB, may come at once.
    public var maximumReceiveRate: Int64?
    /// Bytes a second that each transfer may send (`CURLOPT_MAX_SEND_SPEED_LARGE`); `nil`: as fast as it goes.
    public var maximumSendRate: Int64?
    /// The longest response of a data task, in bytes after decompression.
    public var maximumResponseSize = 128 << 20
    /// How many times more a response may decompress to than arrived, once 8 MiB have come out: what grows faster ends as
    /// ``HTTPSessionError/Code/responseTooLarge``. zlib's greatest is about 1,030.
    public var maximumDecompressionRatio = 250
    /// Redirects followed for one task (`CURLOPT_MAXREDIRS` is not used).
    public var maximumRedirects = 20

    // MARK: Requests

    /// When tasks try again by themselves.
    public var retryPolicy = RetryPolicy.default
    /// Where the session has a `PathMonitor`: a task whose network is gone, or is one that it may not use, waits for another, however
    /// long, under its resource timeout. `false`: it ends with ``HTTPSessionError/Code/notConnected`` when its retries are used up, and
    /// at once with ``HTTPSessionError/Code/networkNotAllowed``. At most 64 servers out of reach are watched at a time: the tasks of any
    /// further one have their ``retryPolicy`` alone.
    public var waitsForConnectivity = true
    /// Where the session keeps what its resume data stands for: made when it is needed, readable by its owner only. A download that ends
    /// with an error, or is cancelled, then leaves a hidden part beside its destination, and resume data in its error
    /// (``HTTPSessionError/resumeData``), if anything has come of it under a strong validator or a digest, and if its
    /// destination does not keep the part itself (``DownloadDestination/partialFile-swift.property``); at most 1,000 of them for seven days. `nil`: nothing
    /// is left.
    public var resumeDirectory: URL?
    /// Sent with every request that does not have the field itself. `Proxy-Authorization` is refused: a tunnel would lead it to the
    /// server. A proxy's user and password are given in ``proxy``, in the credential store or by a challenge handler.
    public var additionalHeaderFields: HTTPFields = [:]
    /// Ask for gzip, deflate, br and zstd, as libcurl was built, and decompress. Downloads to files ask for no compression.
    public var decompressesResponses = true
    /// Follow a redirect from https to http. Credentials and cookies of secure sites stay behind in any case.
    public var followsInsecureRedirects = false
    /// Where cookies are kept.
    public var cookies = CookieStorage.ephemeral
    /// Where Strict-Transport-Security (RFC 6797) is remembered, in a directory that is there; `nil`: in memory, with the session. Written
    /// when the session ends, not before. Requests that handle no cookies (``TransferRequest/Options/handlesCookies``) have a memory of
    /// their own, without this file.
    public var hstsFile: URL?
    /// Obey Strict-Transport-Security: an address of http becomes one of https where its server has asked for that. Where
    /// ``insecureHTTP`` does not allow http at all, the address is refused before.
    public var enforcesHSTS = true
    /// `false`: nothing goes over a cellular interface (`PathMonitor` tells; without one nothing is known and nothing is held back).
    public var allowsCellularAccess = true
    /// `false`: nothing goes over an interface that Reachability calls expensive.
    public var allowsExpensiveAccess = true
    /// `false`: nothing goes over an interface that Reachability calls constrained.
    public var allowsConstrainedAccess = true
    /// Where the session writes: its own faults as warnings, the life of tasks at `debug`. Never a secret.
    public var logger = Logger(label: "HTTPSession")
    /// A name for logs and threads, at most 15 bytes.
    public var name = "http-session"

    /// What most programs want: HTTPS, cookies in memory, system roots.
    public static let `default` = SessionConfiguration()
    /// One that keeps nothing beyond the session: no cookies, no Strict-Transport-Security. The default keeps nothing either.
    public static let ephemeral = SessionConfiguration()

    /// What ``default`` says.
    public init() {}
}

extension SessionConfiguration {
    /// Which hosts may be spoken to without TLS, as App Transport Security has it.
    public struct InsecureHTTP: Hashable, Sendable {
        private let allowsEveryHost: Bool
        private let allowedHosts: [HostPattern]

        /// None.
        public static let refused = InsecureHTTP(allowsEveryHost: false, allowedHosts: [])
        /// Every host: for tests, and for networks where nobody else is.
        public static let allowed = InsecureHTTP(allowsEveryHost: true, allowedHosts: [])

        /// Only the named ones.
        public static func allowed(for hosts: HostPattern...) -> InsecureHTTP {
            InsecureHTTP(allowsEveryHost: false, allowedHosts: hosts)
        }

        func allows(_ host: String) -> Bool { allowsEveryHost || allowedHosts.contains { $0.matches(host) } }
    }

    /// Which version of HTTP is asked for.
    @nonexhaustive public enum HTTPVersion: Hashable, Sendable, CaseIterable {
        /// HTTP/2 over TLS where the server offers it (ALPN), else HTTP/1.1.
        case automatic
        /// HTTP/1.1.
        case http1
        /// HTTP/2 over TLS, and without TLS by prior knowledge (RFC 9113 section 3.3), where libcurl before 8.0 needs a connection for each
        /// request. Streams use HTTP/1.1 all the same.
        case http2
    }

    /// The way out.
    @nonexhaustive public enum Proxy: Hashable, Sendable {
        /// `http_proxy`, `https_proxy`, `all_proxy` and `no_proxy`, as libcurl reads them.
        case environment
        /// None, whatever the environment says.
        case none
        /// `http://`, `https://`, `socks5://`, `socks5h://` (names resolved by the proxy), `socks4://` or `socks4a://` (likewise), with user
        /// and password where needed; `except` are the hosts that are reached directly (`CURLOPT_NOPROXY`).
        case explicit(String, except: [String] = [])
    }

    /// Which address families may be used.
    @nonexhaustive public enum AddressFamily: Hashable, Sendable, CaseIterable {
        case any, ipv4, ipv6
    }

    /// Addresses for a name (`CURLOPT_RESOLVE`).
    public struct HostOverride: Hashable, Sendable {
        /// The name, as URLs have it: letters, digits, hyphens, dots and underscores. A wildcard is not accepted.
        public var host: String
        /// The port that the request names or means.
        public var port: Int
        /// The IPv4 and IPv6 addresses to connect to, in this order.
        public var addresses: [String]

        /// `host` and `port` are reached at `addresses`.
        public init(host: String, port: Int, addresses: [String]) {
            self.host = host
            self.port = port
            self.addresses = addresses
        }
    }

    /// What counts as too slow.
    public struct LowSpeedLimit: Hashable, Sendable {
        /// Bytes a second.
        public var bytesPerSecond: Int
        /// For how long; at least one second, counted in whole ones.
        public var duration: Duration

        /// Slower than `bytesPerSecond` for `duration`.
        public init(bytesPerSecond: Int, duration: Duration) {
            self.bytesPerSecond = bytesPerSecond
            self.duration = duration
        }
    }

    /// Where cookies are kept. For which domains a server may set them is the public-suffix list's word, where libcurl has one
    /// (``knowsPublicSuffixes``). Of more than 3,000, the oldest of those domains go that have the most.
    @nonexhaustive public enum CookieStorage: Hashable, Sendable {
        /// Nowhere: none are kept or sent, but those in a request's own fields.
        case none
        /// In memory, with the session.
        case ephemeral
        /// In a file of Netscape's format for its owner's eyes, read when the session starts, and written anew within a second of a
        /// change and when the session ends. Sessions at the same time want files of their own, or a ``CookieStore``.
        case file(URL)
        /// In a store that other sessions may have too: what one of them is given, all send.
        case shared(CookieStore)
    }
}
