import Foundation
import Glibc
import HTTPSessionTestKit
import NetworkLab

/// nginx on loopback, unprivileged, with everything it writes in a directory of its own. It ends with this value, and with the test
/// process however that ends.
///
/// | target | what it is |
/// |---|---|
/// | `/1k` | 1,024 bytes, the pattern of ``StubBody/pattern(_:)`` |
/// | `/1m`, `/16m` | the same with as many bytes; ranges, ETag and Last-Modified as nginx has them |
/// | `/huge` | 2 GiB of zeros (a sparse file) |
/// | `/text` | 100,000 bytes of text/plain, gzipped for whoever accepts that |
/// | `/compressed` | a line of text, gzipped for whoever accepts that, and so without a length; it reads no body |
/// | `/slow/NAME?rate=10k` | one of these at so many bytes a second |
/// | `/sink` | takes any body and answers 200 when it has it |
/// | `/status/204`, `/status/404`, `/status/503` | that status |
/// | `/redirect/307?to=TARGET` | 301, 302, 303, 307 or 308 to the target |
/// | `/echo-headers` | method, protocol and some fields of the request, a line each |
final class Nginx: Sendable {
    /// One for the whole run, started at first use.
    static let shared = Result { try Nginx() }

    /// There where the package is.
    static let program = "/usr/sbin/nginx"

    /// HTTP/1.1 in plain text.
    let port: UInt16
    /// TLS 1.2 and 1.3, with HTTP/2 for whoever offers it.
    let tlsPort: UInt16
    /// HTTP/2 in plain text, for those who know beforehand (RFC 9113 section 3.3).
    let priorPort: UInt16
    /// Its certificate, which is its own root too: localhost, 127.0.0.1, ::1 and its address.
    let identity: SelfSignedCertificate
    /// HTTP/1.1 in plain text over a Unix socket.
    let unixSocket: String
    private let address: String
    private let folder: ScratchDirectory
    private let program: Program

    /// Starts one on a lab host, or in the test's own network, at a numeric address there.
    init(on host: LabHost? = nil, address: String = "127.0.0.1") throws {
        self.address = address
        folder = try ScratchDirectory()
        identity = try SelfSignedCertificate(names: ["localhost", "127.0.0.1", "::1"] + (host == nil ? [] : [address]))
        unixSocket = folder.file("socket")
        try Data(identity.certificate.utf8).write(to: URL(fileURLWithPath: folder.file("certificate")))
        try Data(identity.privateKey.utf8).write(to: URL(fileURLWithPath: folder.file("key")))
        try Nginx.writeFiles(to: folder.file("files"))

        // Somebody else may take a port between the kernel's choice and nginx's bind.
        var attempt = 0
        while true {
            attempt += 1
            let ports = host == nil ? try (0..<3).map { _ in try freePort(address) } : [8080, 8443, 8082]
            let text = Nginx.configuration(folder: folder, address: address, ports: ports)
            try Data(text.utf8).write(to: URL(fileURLWithPath: folder.file("nginx.conf")))
            let program = try Program(
                ["/usr/sbin/nginx", "-p", folder.path, "-c", folder.file("nginx.conf"), "-e", folder.file("early.log")], on: host)
            do {
                // Its sockets are open by then.
                _ = try program.nextLine { $0.contains("using the \"epoll\"") }
                (self.program, port, tlsPort, priorPort) = (program, ports[0], ports[1], ports[2])
                return
            } catch {
                if attempt == 5 {
                    let log = (try? String(contentsOfFile: folder.file("early.log"), encoding: .utf8)) ?? ""
                    throw LabError("nginx: \(error)\n\(log)")
                }
            }
        }
    }

    /// The URL of a target, in plain text.
    func url(_ target: String) throws -> URL { try url("http", port, target) }

    /// The URL of a target, encrypted.
    func tlsURL(_ target: String) throws -> URL { try url("https", tlsPort, target) }

    /// The URL of a target, in plain text by HTTP/2.
    func priorURL(_ target: String) throws -> URL { try url("http", priorPort, target) }

    /// The bytes of `/1k`, `/1m` and `/16m`.
    static func pattern(_ count: Int) -> Data {
        Data(StubBody.patternBytes(from: 0, count: count))
    }

    private func url(_ scheme: String, _ port: UInt16, _ target: String) throws -> URL {
        let host = address.contains(":") ? "[\(address)]" : address
        guard let url = URL(string: "\(scheme)://\(host):\(port)\(target)") else { throw LabError("no URL: \(target)") }
        return url
    }

    private static func writeFiles(to path: String) throws {
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        func write(_ data: Data, _ name: String) throws {
            try data.write(to: URL(fileURLWithPath: "\(path)/\(name)"))
        }
        let mebibyte = pattern(1 << 20)
        try write(mebibyte.prefix(1024), "1k")
        try write(mebibyte, "1m")
        // The pattern has no period that would fit into a mebibyte, so the longer file is made whole.
        try write(pattern(1 << 24), "16m")
        try write(Data(String(repeating: "all work and no play\n", count: 100_000 / 21 + 1).utf8).prefix(100_000), "text")
        try write(Data(), "huge")
        guard truncate("\(path)/huge", 1 << 31) == 0 else { throw LabError("truncate: \(errno)") }
    }

    private static func configuration(folder: ScratchDirectory, address: String, ports: [UInt16]) -> String {
        let host = address.contains(":") ? "[\(address)]" : address
        let statuses = [204, 404, 503].map { "location = /status/\($0) { return \($0); }" }
        let redirects = [301, 302, 303, 307, 308].map { "location = /redirect/\($0) { return \($0) $arg_to; }" }
        let echoed = [
            "request_method", "server_protocol", "http_host", "http_authorization", "http_cookie", "http_user_agent",
            "http_accept_encoding", "http_range", "http_if_range",
        ]
        return """
            daemon off;
            master_process off;
            pid \(folder.file("pid"));
            error_log /dev/stdout notice;
            events { worker_connections 4096; }
            http {
                # What goes wrong with requests must not fill the pipe that the test reads no further.
                error_log \(folder.file("error.log")) warn;
                access_log off;
                log_not_found off;
                client_body_temp_path \(folder.file("body"));
                proxy_temp_path \(folder.file("proxy"));
                fastcgi_temp_path \(folder.file("fastcgi"));
                uwsgi_temp_path \(folder.file("uwsgi"));
                scgi_temp_path \(folder.file("scgi"));
                default_type application/octet-stream;
                sendfile on;
                tcp_nopush on;
                keepalive_requests 1000000;
                client_max_body_size 0;
                server {
                    listen \(host):\(ports[0]) backlog=4096;
                    listen \(host):\(ports[1]) ssl http2 backlog=4096;
                    listen \(host):\(ports[2]) http2 backlog=4096;
                    listen unix:\(folder.file("socket"));
                    ssl_certificate \(folder.file("certificate"));
                    ssl_certificate_key \(folder.file("key"));
                    ssl_protocols TLSv1.2 TLSv1.3;
                    ssl_session_cache shared:sessions:1m;
                    root \(folder.file("files"));
                    location = /text {
                        types { }
                        default_type text/plain;
                        gzip on;
                        gzip_types text/plain;
                    }
                    location /slow/ {
                        alias \(folder.file("files"))/;
                        limit_rate $arg_rate;
                    }
                    location = /sink {
                        client_body_buffer_size 64k;
                        proxy_pass http://unix:\(folder.file("socket")):/taken;
                    }
                    location = /taken { return 200; }
                    location = /compressed {
                        default_type text/plain;
                        gzip on;
                        gzip_min_length 1;
                        gzip_types text/plain;
                        return 200 "of a length that nobody tells";
                    }
                    \(statuses.joined(separator: "\n        "))
                    \(redirects.joined(separator: "\n        "))
                    location = /echo-headers {
                        default_type text/plain;
                        return 200 "\(echoed.map { "$\($0)\\n" }.joined())";
                    }
                }
            }
            """
    }
}

/// A TCP port that was free a moment ago.
private func freePort(_ address: String) throws -> UInt16 {
    let server = try TestServer(at: .ip(address, port: 0)) { _ in StubResponse() }
    defer { server.stop() }
    return server.port
}
