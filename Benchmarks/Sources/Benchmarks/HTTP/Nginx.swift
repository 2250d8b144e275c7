import Foundation
import Glibc
import Hosts

/// An nginx of one process with the files `1k` and `document.json`, and two of zeros without blocks: `10m` has 10 MiB, and `huge`
/// 2 GiB. It ends with this object.
final class Nginx {
    private let child: Child

    /// Starts nginx with the files of `folder`, in a host's network namespace or in this process's own. It serves when this
    /// returns. Each of `servers` is the content of a `server` block, and `http` precedes these blocks.
    init(_ folder: WorkFolder, in host: LabHost? = nil, http: String = "access_log off;", servers: [String]) throws {
        try FileManager.default.createDirectory(atPath: folder.file("files"), withIntermediateDirectories: false)
        try Data(repeating: UInt8(ascii: "a"), count: 1024).write(to: URL(fileURLWithPath: folder.file("files/1k")))
        try Data(Self.document.utf8).write(to: URL(fileURLWithPath: folder.file("files/document.json")))
        for (name, size) in [("10m", 10 << 20), ("huge", 1 << 31)] {
            try Data().write(to: URL(fileURLWithPath: folder.file("files/\(name)")))
            guard truncate(folder.file("files/\(name)"), size) == 0 else { throw BenchmarkError("truncate: errno \(errno)") }
        }
        try Data(Self.configuration(folder, http, servers).utf8).write(to: URL(fileURLWithPath: folder.file("nginx.conf")))
        child = try Child(
            ["nginx", "-p", folder.path, "-c", folder.file("nginx.conf"), "-e", folder.file("early.log")], in: host,
            output: .lines)
        do {
            // The listening socket is open when this line is written.
            _ = try child.await("nginx", within: 10) { $0.contains("using the \"epoll\"") }
        } catch {
            let log = (try? String(contentsOfFile: folder.file("early.log"), encoding: .utf8)) ?? ""
            throw BenchmarkError("\(error): Debian's package nginx-light has it\n\(log)")
        }
    }

    deinit { child.stop() }

    /// A list of objects in about a kilobyte of JSON.
    private static var document: String {
        "[\((0..<20).map { #"{"id":\#($0),"name":"device \#($0)","active":true,"load":0.5}"# }.joined(separator: ","))]"
    }

    private static func configuration(_ folder: WorkFolder, _ http: String, _ servers: [String]) -> String {
        let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map { "\($0)_temp_path \(folder.file($0));" }
        return """
            daemon off;
            master_process off;
            pid \(folder.file("pid"));
            error_log /dev/stdout notice;
            events { worker_connections 4096; }
            http {
                error_log \(folder.file("error.log")) warn;
                \(temporary.joined(separator: "\n    "))
                types { application/json json; }
                default_type application/octet-stream;
                root \(folder.file("files"));
                sendfile on;
                tcp_nopush on;
                keepalive_requests 100000000;
                keepalive_timeout 1h;
                send_timeout 1h;
                \(http)
                \(servers.map { "server { \($0) }" }.joined(separator: "\n    "))
            }
            """
    }
}
