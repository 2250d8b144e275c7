import Expectations
import FoundationEssentials
import Glibc
import HTTPSessionTestKit
import NetworkLab
import Testing
import TestServers

@Suite(.timeLimit(.minutes(20)))
struct SilentResolverTests {
    @Test func `a silent resolver receives questions and answers none`() async throws {
        let resolver = try SilentResolver(port: 0)
        let socket = Glibc.socket(AF_INET, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        defer { close(socket) }
        var name = sockaddr_in()
        name.sin_family = sa_family_t(AF_INET)
        name.sin_port = resolver.port.bigEndian
        inet_pton(AF_INET, "127.0.0.1", &name.sin_addr)
        let question = [UInt8](repeating: 0, count: 12) + [3] + Array("www".utf8) + [4] + Array("test".utf8) + [0, 0, 1, 0, 1]
        let sent = withUnsafePointer(to: &name) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                sendto(socket, question, question.count, 0, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        expectEqual(sent, question.count)
        try await expectEqual(resolver.awaitQuestions(1), ["www.test"])
        var answer = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
        expectEqual(poll(&answer, 1, 50), 0)
        resolver.stop()
    }

    @Test(.requiresNamespaces) func `the resolver of a host sends its questions to a silent resolver`() async throws {
        let host = try Lab().host(loopback: true)
        let resolver = try SilentResolver(namespace: host.path)
        // The program has a mount namespace of its own, and so a configuration of its own.
        let folder = try ScratchDirectory()
        try write("nameserver 127.0.0.1\n", to: folder.file("resolv.conf"))
        let script = "mount --bind \(folder.file("resolv.conf")) /etc/resolv.conf && exec getent ahosts nowhere.test"
        let program = try Program(["unshare", "--mount", "sh", "-c", script], on: host)
        try await expectEqual(resolver.awaitQuestions(1).first, "nowhere.test")
        program.stop()
    }
}
