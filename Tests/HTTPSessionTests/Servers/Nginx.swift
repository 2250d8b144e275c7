import Foundation
import Glibc
import HTTPSessionTestKit
import NetworkLab

/// nginx on loopback, unprivileged, with a directory of its own for all files. The process ends with this value, and also if the
/// test process is killed.
///
/// | target | content |
/// |---|---|
/// | `/1k` | 1,024 bytes, the pattern of ``StubBody/pattern(_:)`` |
/// | `/1m`, `/16m` | the same pattern with as many bytes; ranges, ETag and Last-Modified by nginx |
/// | `/huge` | 2 GiB of zeros (a sparse file) |
/// | `/text` | 100,000 bytes of text/plain, gzipped if the client accepts gzip |
/// | `/compressed` | a line of text without Content-Length, gzipped if the client accepts gzip; the request body is not read |
/// | `/slow/NAME?rate=10k` | one of these files at the given number of bytes per second |
/// | `/sink` | reads any body and then answers 200 |
/// | `/status/204`, `/status/404`, `/status/503` | that status |
/// | `/redirect/307?to=TARGET` | 301, 302, 303, 307 or 308 to the target |
/// | `/echo-headers` | method, protocol and some fields of the request, a line each |
final class Nginx: Sendable {
    /// One server for the test process, started at first use.
    static let shared = Result { try Nginx() }

    /// The file by which the program is found.
    static let program = "/usr/sbin/nginx"

    /// The port for HTTP/1.1 in plain text.
    let port: UInt16
    /// The port for TLS 1.2 and 1.3, with HTTP/2 if the client offers it.
    let tlsPort: UInt16
    /// The port for HTTP/2 in plain text with prior knowledge (RFC 9113 section 3.3).
    let priorPort: UInt16
    /// The certificate, which is also its own root: localhost, 127.0.0.1, ::1 and the server's address.
    let identity: SelfSignedCertificate
    /// The path of a Unix socket with HTTP/1.1 in plain text.
    let unixSocket: String
    private let address: String
    private let folder: ScratchDirectory
    private let program: Program

    /// Starts nginx on a lab host, or in the test's own network, at a numeric address of that network.
    init(on host: LabHost? = nil, address: String = "127.0.0.1") throws {
        self.address = address
        folder = try ScratchDirectory()
        identity = try SelfSignedCertificate(names: ["localhost", "127.0.0.1", "::1"] + (host == nil ? [] : [address]))
        unixSocket = folder.file("socket")
        try Data(identity.certificate.utf8).write(to: URL(fileURLWithPath: folder.file("certificate")))
        try Data(identity.privateKey.utf8).write(to: URL(fileURLWithPath: folder.file("key")))
        try Nginx.writeFiles(to: folder.file("files"))

        // Another process may take a port between the kernel's choice and nginx's bind.
        var attempt = 0
        while true {
            attempt += 1
            let ports = host == nil ? try (0..<3).map { _ in try freePort(address) } : [8080, 8443, 8082]
            let text = Nginx.configuration(folder: folder, address: address, ports: ports)
            try Data(text.utf8).write(to: URL(fileURLWithPath: folder.file("nginx.conf")))
            let program = try Program(
                ["/usr/sbin/nginx", "-p", folder.path, "-c", folder.file("nginx.conf"), "-e", folder.file("early.log")], on: host)
            do {
                // nginx's sockets are open when it logs this line.
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

    /// The URL of a target for HTTP/1.1 in plain text.
    func url(_ target: String) throws -> URL { try url("http", port, target) }

    /// The URL of a target for TLS.
    func tlsURL(_ target: String) throws -> URL { try url("https", tlsPort, target) }

    /// The URL of a target for HTTP/2 in plain text.
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
        // The pattern's period does not divide a mebibyte, so the longer file cannot be made of copies.
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
                    location = /limited {
                        client_max_body_size 1m;
                        return 200;
                    }
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

/// A TCP port that was free when it was checked.
private func freePort(_ address: String) throws -> UInt16 {
    let server = try TestServer(at: .ip(address, port: 0)) { _ in StubResponse() }
    defer { server.stop() }
    return server.port
}
