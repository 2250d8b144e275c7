import Foundation
import Glibc
import NetworkLab

/// httpbin on loopback: Debian's package, served by werkzeug over HTTP/1.1. The process ends with this value, and also if the
/// test process is killed.
final class Httpbin: Sendable {
    /// One server for the test process, started at first use.
    static let shared = Result { try Httpbin() }

    /// The file by which the package is found.
    static let program = "/usr/lib/python3/dist-packages/httpbin/core.py"

    /// The port on 127.0.0.1.
    let port: UInt16
    private let program: Program

    /// Starts a server.
    init() throws {
        // Debian's packages are made for Debian's Python. With port 0 the kernel chooses a port, which the first line reports.
        let program = try Program(["/usr/bin/python3", "-c", script], environment: ["PYTHONPATH": nil, "PYTHONHOME": nil])
        let line = try program.nextLine(within: .seconds(60)) { $0.hasPrefix("port ") }
        guard let port = UInt16(line.dropFirst(5)) else { throw LabError("httpbin: \(line)") }
        self.port = port
        self.program = program
    }

    /// The URL of a target: `/get`, `/post`, `/digest-auth/auth/USER/PASSWORD`, `/redirect-to?url=…` and the others that
    /// httpbin.org describes.
    func url(_ target: String) throws -> URL {
        guard let url = URL(string: "http://127.0.0.1:\(port)\(target)") else { throw LabError("no URL: \(target)") }
        return url
    }
}

private let script = """
    from werkzeug.serving import WSGIRequestHandler, make_server
    from httpbin import app
    class Handler(WSGIRequestHandler):
        protocol_version = "HTTP/1.1"
        def log(self, *arguments):
            pass
    server = make_server("127.0.0.1", 0, app, threaded=True, request_handler=Handler)
    print("port", server.port, flush=True)
    server.serve_forever()
    """
