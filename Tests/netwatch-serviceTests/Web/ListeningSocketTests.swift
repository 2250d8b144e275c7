import Console
import Expectations
import Foundation
import Glibc
import NetworkLab
import Reachability
import Testing

@testable import netwatch_service

@Suite struct ListeningSocketTests {
    @Test(arguments: [true, false]) func `a file or a link at the path of the socket is refused, and stays`(isLink: Bool) throws {
        let directory = try ScratchDirectory()
        let (path, file) = (directory.file("api.sock"), directory.file("notes.txt"))
        try Data("notes".utf8).write(to: URL(fileURLWithPath: isLink ? file : path))
        if isLink { try #require(symlink(file, path) == 0) }
        #expect(throws: Failure(71, "\(path): exists, and is not a socket; remove it")) {
            try ListeningSocket.unix(path: path, mode: 0o600)
        }
        try expectEqual(String(contentsOfFile: path, encoding: .utf8), "notes")
    }

    @Test func `an inherited socket on another address than loopback is refused as listen is`() throws {
        func inherit(_ address: IPAddress) throws -> String {
            let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
            defer { close(descriptor) }
            var name = [UInt8](repeating: 0, count: 16)
            name.replaceSubrange(0..<8, with: [UInt8(AF_INET), 0, 0, 0] + address.bytes)
            let result = name.withUnsafeBytes { bytes in
                bytes.baseAddress.map { bind(descriptor, $0.assumingMemoryBound(to: sockaddr.self), 16) } ?? -1
            }
            try #require(result == 0 && listen(descriptor, 1) == 0)
            do throws(Failure) {
                return try ListeningSocket(inherited: descriptor).endpoint.map { "\($0.address)" } ?? "none"
            } catch { return "\(error.code) \(error.message.replacing(/:[0-9]+/, with: ":PORT"))" }
        }
        try expectEqual(inherit(IPAddress(v4: 0x7f00_0001)), "127.0.0.1")
        try expectEqual(
            inherit(IPAddress(v4: 0)),
            """
            78 the inherited socket 0.0.0.0:PORT: not a loopback address; others are not supported, because the page has no login
            """)
    }
}
