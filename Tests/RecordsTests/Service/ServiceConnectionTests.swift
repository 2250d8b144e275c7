import Console
import Expectations
import Foundation
import Glibc
import NetworkLab
import Testing

@testable import Records

/// Documents of a service that does not answer as it should.
@Suite(.timeLimit(.minutes(20))) struct ServiceConnectionTests {
    private static let head = "HTTP/1.1 200 OK\r\n"

    @Test func `a document ends with its length, its last chunk, or its connection`() throws {
        for answer in [
            "Content-Length: 2\r\n\r\n{}", "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", "Server: x\r\n\r\n{}",
        ] {
            let service = try FakeService { $0.send(Self.head + answer) }
            try expectEqual(service.document(), Array("{}".utf8))
        }
    }

    @Test(arguments: ["Content-Length: 500\r\n\r\n{}", "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n"])
    func `an incomplete document is an error, and not a document`(answer: String) throws {
        let service = try FakeService { $0.send(Self.head + answer) }
        let reason = "\(service.path): the service has closed the connection before the end of its answer"
        #expect(throws: Failure(74, reason)) { try service.document() }
    }

    @Test func `an incomplete error is the error of the service`() throws {
        let service = try FakeService { $0.send("HTTP/1.1 404 Not Found\r\nContent-Length: 500\r\n\r\n{") }
        #expect(throws: Failure(66, "\(service.path): the service answers 404")) { try service.document() }
    }

    @Test func `a service that sends nothing for the time limit does not work`() throws {
        var limits = ServiceConnection.DocumentLimits()
        expectEqual(limits.silence, .seconds(30))
        limits.silence = .milliseconds(50)
        let service = try FakeService()
        #expect(throws: Failure(69, "\(service.path): the service has sent nothing for 50ms")) {
            try service.document(limits)
        }
    }

    @Test func `a document without an end is refused at the size limit`() throws {
        var limits = ServiceConnection.DocumentLimits()
        expectEqual(limits.size, 256 << 20)
        limits.size = 1 << 20
        let service = try FakeService { client in
            client.send(Self.head + "\r\n")
            let piece = String(repeating: "x", count: 65_536)
            while client.send(piece) {}
        }
        #expect(throws: Failure(74, "\(service.path): the answer is larger than 1 MiB")) { try service.document(limits) }
    }
}

/// A Unix socket that answers its first request, and closes the connection.
private final class FakeService {
    /// A connection of a client.
    struct Client: Sendable {
        fileprivate let descriptor: Int32

        /// Sends a text. - Returns: `false` if the client does not receive it.
        @discardableResult
        func send(_ text: String) -> Bool {
            var remaining = Array(text.utf8)[...]
            while !remaining.isEmpty {
                let count = remaining.withUnsafeBytes { Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
                guard count > 0 else { return false }
                remaining = remaining.dropFirst(count)
            }
            return true
        }
    }

    let path: String
    private let directory: ScratchDirectory
    private let descriptor: Int32

    /// Listens. - Parameter answer: sends the answer; `nil` for a service that is stopped.
    init(_ answer: (@Sendable (Client) -> Void)? = nil) throws {
        directory = try ScratchDirectory()
        path = directory.file("api.sock")
        let listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        descriptor = listener
        var name = sockaddr_un()
        name.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &name.sun_path) { $0.copyBytes(from: path.utf8) }
        let result = withUnsafeBytes(of: name) { raw in
            raw.baseAddress.map { bind(listener, $0.assumingMemoryBound(to: sockaddr.self), socklen_t(raw.count)) } ?? -1
        }
        try #require(result == 0 && listen(listener, 1) == 0)
        guard let answer else { return }
        Thread.detachNewThread {
            let client = accept(listener, nil, nil)
            var request = [UInt8](repeating: 0, count: 4_096)
            _ = recv(client, &request, request.count, 0)
            answer(Client(descriptor: client))
            close(client)
        }
    }

    deinit { close(descriptor) }

    func document(_ limits: ServiceConnection.DocumentLimits = .init()) throws -> [UInt8] {
        try ServiceConnection(path, [:]).document("/api/v1/history", limits: limits)
    }
}
