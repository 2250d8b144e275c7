public import FoundationEssentials
public import HTTPTypes
public import Logging
public import Reachability

/// The behavior of a session. The session reads it once, when it is made.
public struct SessionConfiguration: Sendable {
    // MARK: Addresses and transport

    /// The hosts that may be contacted without TLS; none by default.
    public var insecureHTTP = InsecureHTTP.refused
    /// The version of HTTP that is requested; ``HTTPVersion/automatic`` by default.
    public var httpVersion = HTTPVersion.automatic
    /// The largest number of connections to one host, from 1 to 1,000; 6 by default.
    ///
    /// Over HTTP/2, requests share a connection. Each stream task has a connection of its own. If the host supports HTTP/2, one connection remains
    /// for all other requests.
    ///
    /// A suspended task keeps its connection. If other tasks wait for the host, it yields its place to them one second after its suspension, and
    /// continues at once when it is resumed. The same applies to a stream whose chunks nobody reads, and to an upload whose stream has nothing to
    /// send, after they have waited for one second. The host may therefore have more connections than this, up to ``maximumConnections``.
    public var maximumConnectionsPerHost = 6
    /// The largest number of connections and of running transfers of the session, from 1 to 10,000; 256 by default.
    public var maximumConnections = 256
    /// The largest number of name lookups at a time, from 1 to 64; 8 by default. A lookup occupies a thread until the resolver answers or fails,
    /// even if its task is canceled.
    public var maximumConcurrentLookups = 8
    /// The proxy for this session's requests; the proxy of the environment by default.
    public var proxy = Proxy.environment
    /// The address families that the session uses; both by default.
    public var addressFamily = AddressFamily.any
    /// The name of the interface that the session sends from; `nil` for the kernel's choice.
    ///
    /// The name may be an alternative name from Linux 5.5 on. The system may require CAP_NET_RAW (`SO_BINDTODEVICE`, socket(7)).
    public var interface: String?
    /// The path of a Unix domain socket for all connections (unix(7)); `nil` for none. A connection carries one request.
    public var unixSocketPath: String?
    /// Addresses of names that the session then does not look up; none by default.
    public var hostOverrides: [HostOverride] = []
    /// The network namespace of the session's thread and of all its connections; `nil` for the namespace of the process.
    ///
    /// The C library resolves names inside this namespace, with the `resolv.conf` and `hosts` files that this process sees. `/etc/netns/NAME`
    /// applies only to programs that `ip netns exec` starts.
    public var namespace: NetworkNamespace?

    // MARK: Security

    /// The policy that decides whether a server's certificate is trusted; ``SecurityPolicy/default`` by default.
    public var securityPolicy = SecurityPolicy.default
    /// The policy that decides whether the certificate of an HTTPS proxy is trusted; ``SecurityPolicy/default`` by default. Pins of servers do not
    /// apply to proxies.
    public var proxySecurityPolicy = SecurityPolicy.default
    /// The client certificate for servers that request one; `nil` for none.
    public var clientIdentity: ClientIdentity?

    // MARK: Limits

    /// The limit of one attempt's time for name resolution, TCP and TLS together, from 1 ms to 10 years; 30 s by default. The attempts have the
    /// ``requestTimeout`` together.
    public var connectTimeout = Duration.seconds(30)
    /// The longest time for which the server may be silent, from 1 ms to 10 years; 60 s by default. Then the task fails with
    /// ``HTTPSessionError/Code/timedOut``, however many retries are left.
    ///
    /// The time runs while an attempt connects, and since the last byte was sent or received. Attempts that fail without a response are added up: after
    /// one that was lost after 40 s of silence, the next one has 20 s. It does not run while the task is suspended, in a queue, before a retry, while
    /// it waits for connectivity, and while a handler or the reader of the response is busy. A response of any status restarts it.
    ///
    /// Two kinds of attempts are retried when the time has passed, and each has the complete time: a download that continues behind the bytes that it
    /// has received, or a resumable upload behind those that it has sent; and every attempt under a policy without a limit of retries
    /// (``RetryPolicy/persistent``).
    public var requestTimeout = Duration.seconds(60)
    /// The limit of a task's total time, with all waits, from 1 ms to 10 years; 7 days by default.
    public var resourceTimeout = Duration.seconds(7 * 24 * 3600)
    /// The limit of one handler's time (redirect, challenge, response, server trust), from 1 ms to 10 years; 60 s by default. If the handler is
    /// slower, the task fails with ``HTTPSessionError/Code/handlerTimedOut``.
    public var handlerTimeout = Duration.seconds(60)
    /// The rate below which an attempt fails (`CURLOPT_LOW_SPEED_LIMIT`); `nil` for no such limit.
    public var lowSpeedLimit: LowSpeedLimit?
    /// The largest number of bytes per second that each transfer receives (`CURLOPT_MAX_RECV_SPEED_LARGE`); `nil` for no limit.
    ///
    /// The limit is an average: the bytes of one second, or 100 KB, may arrive at once.
    public var maximumReceiveRate: Int64?
    /// The largest number of bytes per second that each transfer sends (`CURLOPT_MAX_SEND_SPEED_LARGE`); `nil` for no limit.
    public var maximumSendRate: Int64?
    /// The largest body of a response in memory, in bytes after decompression; 128 MiB by default.
    public var maximumResponseSize = 128 << 20
    /// The largest ratio of a decompressed body to the received bytes, checked after 8 MiB of output; 250 by default.
    ///
    /// A body that exceeds it fails with ``HTTPSessionError/Code/responseTooLarge``. The maximum of zlib is about 1,030.
    public var maximumDecompressionRatio = 250
    /// The largest number of redirects of one task, from 0 to 1,000; 20 by default. The session counts them itself and does not use
    /// `CURLOPT_MAXREDIRS`.
    public var maximumRedirects = 20

    // MARK: Requests

    /// The policy by which tasks retry; ``RetryPolicy/default`` by default.
    public var retryPolicy = RetryPolicy.default
    /// Whether a task waits for a network that leads to its server; `true` by default.
    ///
    /// Waiting needs a `PathMonitor` (`monitor:`). If the network is lost, or the task may not use it, the task waits for another network:
    /// a data or stream task for ``connectivityTimeout``, a download or upload until its resource timeout. If the value is `false`, a task without a network fails with ``HTTPSessionError/Code/notConnected`` after its
    /// retries. A task that may not use the network fails at once with ``HTTPSessionError/Code/networkNotAllowed``. A session probes at most 64
    /// unreachable servers at a time; for tasks of other servers only the ``retryPolicy`` applies.
    public var waitsForConnectivity = true
    /// The longest time for which data and stream tasks wait for a network, from 1 ms to 10 years; 60 s by default.
    ///
    /// All waits count together, until a response arrives or the task is suspended. After this time the task fails with the reason of its wait, and
    /// the reason's `cause`: ``HTTPSessionError/Code/notConnected``, or ``HTTPSessionError/Code/networkNotAllowed`` if the task may not use the
    /// network. Downloads and uploads wait until their resource timeout. ``TransferRequest/Options/connectivityTimeout`` of a request applies to
    /// tasks of every kind.
    public var connectivityTimeout = Duration.seconds(60)
    /// The directory for the state of resume data; `nil` for no resume data. The session creates it if necessary, readable by its owner only.
    ///
    /// With a directory, a download that fails or is canceled leaves a partial file with a random name beside its destination, and resume data in
    /// its error (``HTTPSessionError/resumeData``). This requires bytes received under a strong validator or a digest, and a destination that
    /// does not keep the partial file itself (``DownloadDestination/partialFile-swift.property``). At most 1,000 partial files are kept, for
    /// seven days.
    public var resumeDirectory: URL?
    /// The header fields of every request that does not have a field of the same name; none by default.
    ///
    /// `Proxy-Authorization` is refused, because a tunnel would send it to the server. Put the user and password of a proxy into ``proxy``, into
    /// the credential store, or into the answer of a challenge handler.
    public var additionalHeaderFields: HTTPFields = [:]
    /// The names of further fields that another origin receives after a redirect, or if the location of a resumable upload is there; none by default.
    ///
    /// Another origin receives the fields that say what the client wants or sends (Accept, Range, User-Agent, Content-Type, If-None-Match and
    /// the like). Others may be secrets, such as `X-Api-Key`, and are not sent to it unless they are named here. If the redirect leads from
    /// https to http, they are not sent at all. Authorization, Proxy-Authorization, Cookie, Host, Origin and Referer never follow.
    public var forwardedHeaderFields: Set<HTTPField.Name> = []
    /// Whether compressed responses are decompressed (gzip and deflate; br and zstd if libcurl has loaded their libraries); `true` by default.
    ///
    /// Tasks that keep the response in memory request compression. Streams and downloads to files request none (`Accept-Encoding: identity`), because a
    /// range addresses the compressed bytes. If a server compresses nevertheless, the chunks and the file are decompressed, and a download that is cut
    /// restarts. Compressed data that end early are ``HTTPSessionError/Code/cannotDecodeContent``. With `false`, or with an `Accept-Encoding` of the
    /// request, every kind of task has the bytes as they were sent.
    public var decompressesResponses = true
    /// Whether redirects from https to http are followed; `false` by default. Credentials and secure cookies are never sent to the http URL.
    public var followsInsecureRedirects = false
    /// The storage of cookies; ``CookieStorage/ephemeral`` by default.
    public var cookies = CookieStorage.ephemeral
    /// The file of Strict-Transport-Security (RFC 6797), in an existing directory; `nil` for memory only.
    ///
    /// The session writes the file when it ends. Requests without cookies (``TransferRequest/Options/handlesCookies``) use a separate list in
    /// memory, which is not written to this file.
    public var hstsFile: URL?
    /// Whether http URLs are upgraded to https if their server has requested that by Strict-Transport-Security; `true` by default. If
    /// ``insecureHTTP`` does not allow http for the host, the session refuses the URL instead.
    public var enforcesHSTS = true
    /// Whether requests may use a cellular interface; `true` by default. Without a `PathMonitor` the type is not known, and the value has no
    /// effect.
    public var allowsCellularAccess = true
    /// Whether requests may use an interface that is expensive (`NetworkPath.isExpensive`); `true` by default.
    public var allowsExpensiveAccess = true
    /// Whether requests may use an interface that is constrained (`NetworkPath.isConstrained`); `true` by default.
    public var allowsConstrainedAccess = true
    /// The logger of the session; one with the label `HTTPSession` by default. It receives faults of the session as warnings, the first wait
    /// of each task for a network at `notice`, the states of tasks at `debug`, and no secrets.
    public var logger = Logger(label: "HTTPSession")
    /// The name in logs and of threads, of at most 15 bytes; `http-session` by default.
    public var name = "http-session"
    // `transport` has the type; its protocol belongs to a folder that uses configurations.
    var storedTransport: (any Sendable)?

    /// The default configuration: https only, cookies in memory, the certificate authorities of the system.
    public static let `default` = SessionConfiguration()
    /// A configuration that stores nothing beyond the session, like that of URLSession. It equals ``default``, which stores nothing either.
    public static let ephemeral = SessionConfiguration()

    /// Creates the ``default`` configuration.
    public init() {}
}

extension SessionConfiguration {
    /// The hosts that may be contacted without TLS, like the exceptions of App Transport Security.
    public struct InsecureHTTP: Hashable, Sendable {
        private let allowsEveryHost: Bool
        private let allowedHosts: [HostPattern]

        /// The value that allows no host.
        public static let refused = InsecureHTTP(allowsEveryHost: false, allowedHosts: [])
        /// The value that allows every host, for tests and for networks without other users.
        public static let allowed = InsecureHTTP(allowsEveryHost: true, allowedHosts: [])

        /// Returns a value that allows the hosts that match one of the patterns.
        public static func allowed(for hosts: HostPattern...) -> InsecureHTTP {
            InsecureHTTP(allowsEveryHost: false, allowedHosts: hosts)
        }

        func allows(_ host: String) -> Bool { allowsEveryHost || allowedHosts.contains { $0.matches(host) } }
    }

    /// The version of HTTP that is requested.
    @nonexhaustive public enum HTTPVersion: Hashable, Sendable, CaseIterable {
        /// HTTP/2 over TLS if the server supports it (ALPN), otherwise HTTP/1.1.
        ///
        /// Streams, and requests whose body is longer than 4,095 bytes or has no known length, use HTTP/1.1. Over HTTP/2, libcurl 7.88 can lose the
        /// response of a server that answers before it has read the body. More than sixteen shorter bodies at a time to such a server can still
        /// exceed what their connection permits (65,535 bytes); ``http1`` excludes that.
        case automatic
        /// HTTP/1.1.
        case http1
        /// HTTP/2 over TLS, and without TLS by prior knowledge (RFC 9113 section 3.3). Without TLS, libcurl before 8.0 needs a connection for each
        /// request. Streams use HTTP/1.1 in any case. The response to a request with a body can be lost, as
        /// ``HTTPSessionError/Code/connectionLost`` or ``HTTPSessionError/Code/timedOut``, if the server answers before it has read the body.
        case http2
    }

    /// The proxy for a session's requests.
    @nonexhaustive public enum Proxy: Hashable, Sendable {
        /// The proxies of the environment: `http_proxy`, `https_proxy`, `all_proxy` and `no_proxy`, read when the session is made.
        case environment
        /// No proxy, even if the environment names one.
        case none
        /// The proxy of this URL, with user and password if necessary. `except` are the hosts that need no proxy.
        ///
        /// An exception is a name, which includes the names below it (`example.com`, `.example.com` and `*.example.com` are the same), an address
        /// (`::1`, `[::1]`), a network (`10.0.0.0/8`), one of these names and addresses with a port (`example.com:8080`), or `*` for every host. The
        /// words of `no_proxy` are the same, separated by commas or spaces.
        ///
        /// The scheme is `http://`, `https://`, `socks4://`, `socks5://`, `socks4a://` or `socks5h://`. Proxies of the last two schemes resolve the
        /// names. Another scheme, a missing host or an invalid port is ``HTTPSessionError/Code/invalidConfiguration``.
        case explicit(String, except: [String] = [])
    }

    /// The address families that a session uses.
    @nonexhaustive public enum AddressFamily: Hashable, Sendable, CaseIterable {
        /// IPv4 and IPv6.
        case any
        /// IPv4 only.
        case ipv4
        /// IPv6 only.
        case ipv6
    }

    /// The addresses of a name (`CURLOPT_RESOLVE`).
    public struct HostOverride: Hashable, Sendable {
        /// The host name as in a URL: letters, digits, hyphens, dots and underscores. A wildcard is not accepted.
        public var host: String
        /// The port of the requests, from 1 to 65535.
        public var port: Int
        /// The IPv4 and IPv6 addresses to connect to, in this order.
        public var addresses: [String]

        /// Creates an override: connections for `host` and `port` are made to `addresses`.
        public init(host: String, port: Int, addresses: [String]) {
            self.host = host
            self.port = port
            self.addresses = addresses
        }
    }

    /// The rate below which an attempt fails.
    public struct LowSpeedLimit: Hashable, Sendable {
        /// The rate in bytes per second, above zero.
        public var bytesPerSecond: Int
        /// The time of the low rate, at least one second; fractions of a second are dropped.
        public var duration: Duration

        /// Creates a limit: an attempt fails if it is slower than `bytesPerSecond` for `duration`.
        public init(bytesPerSecond: Int, duration: Duration) {
            self.bytesPerSecond = bytesPerSecond
            self.duration = duration
        }
    }

    /// The storage of cookies; see ``CookieStore``. The public-suffix list decides for which domains a server may set cookies, if libpsl is
    /// in the process (``knowsPublicSuffixes``).
    @nonexhaustive public enum CookieStorage: Hashable, Sendable {
        /// No storage. Only the cookies in a request's own header fields are sent.
        case none
        /// A store in memory, for this session alone.
        case ephemeral
        /// A store in a file in Netscape's format that only its owner can read, for this session alone.
        ///
        /// The file is read when the session starts, and written within a second of a change and when the session ends. Sessions that run at the
        /// same time need different files, or a shared ``CookieStore``.
        case file(URL)
        /// A store that other sessions may use as well. Each session sends the cookies that other sessions have received.
        case shared(CookieStore)
    }
}

extension SessionConfiguration.CookieStorage {
    /// Whether libpsl is in the process, as with Debian's libcurl. If so, no server can set a cookie for a public suffix, a domain under which
    /// different owners have names (`co.uk`; publicsuffix.org). Otherwise it can, unless the domain has no dot.
    public static var knowsPublicSuffixes: Bool { PublicSuffixList.isKnown }
}

extension SessionConfiguration.HostOverride {
    /// The reason why libcurl would misread the override; `nil` if the override is valid.
    ///
    /// `CURLOPT_RESOLVE` gives a leading `+` or `-`, the host `*`, and every `:` and `,` a special meaning.
    var objection: String? {
        guard (1...65_535).contains(port) else { return "the port is not 1 to 65535" }
        guard isHostName(host) else { return "the host is not a valid host name" }
        guard !addresses.isEmpty else { return "no address is given" }
        guard addresses.allSatisfy({ IPAddress($0.withoutBrackets) != nil }) else {
            return "the addresses are not all IPv4 or IPv6 addresses"
        }
        return nil
    }

    /// Whether the text has at most 253 letters, digits, hyphens, dots and underscores, in labels of 1 to 63.
    private func isHostName(_ host: String) -> Bool {
        let name = host.hasSuffix(".") ? host.dropLast() : host[...]
        guard RequestURL.isPlain(host), (1...253).contains(name.utf8.count), !name.hasPrefix("-") else { return false }
        return name.split(separator: ".", omittingEmptySubsequences: false).allSatisfy { label in
            (1...63).contains(label.utf8.count)
                && label.utf8.allSatisfy { byte in
                    switch byte {
                    case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "-"), UInt8(ascii: "_"): true
                    default: false
                    }
                }
        }
    }
}
