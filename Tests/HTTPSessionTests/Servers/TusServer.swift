import Foundation
import HTTPSession
import HTTPTypes
import NetworkLab

/// tuspyserver from PyPI on loopback, served by uvicorn over HTTP/1.1: an independent tus server. The process ends with this
/// value, and also if the test process is killed.
final class TusServer: Sendable {
    /// The directory in which `scripts/setup test` installs Python packages for the tests.
    static let packages = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent().appending(path: ".build/python").path
    /// The file by which the package is found.
    static let program = packages + "/tuspyserver/__init__.py"

    /// The port on 127.0.0.1.
    let port: UInt16
    private let folder: ScratchDirectory
    private let program: Program

    /// Starts a server on a port of its choice, or on the port of an earlier server whose files it serves from the same folder.
    init(in folder: ScratchDirectory, port: UInt16 = 0) throws {
        self.folder = folder
        program = try Program(
            ["/usr/bin/python3", "-c", script, folder.path, "\(port)"],
            environment: ["PYTHONPATH": TusServer.packages, "PYTHONHOME": nil])
        let line = try program.nextLine(within: .seconds(60)) { $0.hasPrefix("port ") }
        guard let port = UInt16(line.dropFirst(5)) else { throw LabError("tuspyserver: \(line)") }
        self.port = port
    }

    /// The URL that creates uploads.
    func url() throws -> URL {
        guard let url = URL(string: "http://127.0.0.1:\(port)/files/") else { throw LabError("no URL") }
        return url
    }

    /// The offset of the server's only upload, as the server reports it.
    func offset(through session: HTTPSessionManager) async throws -> Int64 {
        guard let id = folder.names.first(where: { !$0.contains(".") }), let version = HTTPField.Name("Tus-Resumable"),
            let offset = HTTPField.Name("Upload-Offset")
        else { return 0 }
        let request = TransferRequest(url: try url().appending(path: id), method: .head, headerFields: [version: "1.0.0"])
        return Int64(try await session.dataTask(for: request).response.httpResponse.headerFields[offset] ?? "") ?? 0
    }

    /// The bytes of an upload that the server has stored.
    func contents(of id: String) throws -> Data { try Data(contentsOf: URL(fileURLWithPath: folder.file(id))) }
}

private let script = """
    import socket, sys
    import uvicorn
    from fastapi import FastAPI
    from tuspyserver import create_tus_router
    app = FastAPI()
    app.include_router(create_tus_router(files_dir=sys.argv[1]))
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", int(sys.argv[2])))
    listener.listen()
    print("port", listener.getsockname()[1], flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listener])
    """
